"""Read the progress and the errors of jobs from their logs (`run/jobs/progress.py`, `measuring.py`); write durations."""

import re
from dataclasses import dataclass
from pathlib import Path

READ = 4096  # bytes of a log's beginning, and of its end
TAIL = 16_384  # bytes of a log's end in which an error is searched
ERROR = re.compile(r"^(error: |checkpointed on |[\w.]*(Error|Exception|Interrupt|Unproved)\b)")
LOADING = "loading PyTorch"  # before the first line of a log
SILENT = "it ended without a word: killed, or taken away by the scheduler"
CELLS = re.compile(r"^(?:\S+: )?(\d+) cells: (\d+) in store, (\d+) to (?:train|measure)", re.MULTILINE)
STEP = re.compile(r"^(\d+)/(\d+) cells; stack of (\d+): step (\d+)/(\d+), (\d+(?:\.\d+)?) member-steps/s", re.MULTILINE)
LOSS = re.compile(r"loss (\S+) to (\S+?),")
MEASURED = re.compile(r"^\S+: (\d+)/(\d+) measured", re.MULTILINE)
CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)  # all but line breaks and tabs: a library's colours and progress bars


@dataclass(frozen=True)
class Reached:
    """The progress of a job."""

    cells: int = 0  # finished cells
    total: int = 0  # all cells of the job
    share: float = 0.0  # finished share of the cells that were missing
    rate: float = 0.0  # training steps per second, summed over networks
    detail: str = ""


def read_reached(log: Path) -> Reached | None:
    """Return the progress of the job with this log, or None if there is no log."""
    try:
        with log.open("rb") as file:
            text = file.read(READ)
            size = log.stat().st_size
            if size > READ:
                file.seek(max(READ, size - READ))
                text += b"\n" + file.read()
    except OSError:
        return None
    return parse_log(clean(text.decode(errors="replace").replace("\r", "\n")))


def parse_log(text: str) -> Reached:
    """Return the progress of a job whose log has this text. Before the job counts its cells, that is the last line of the log."""
    start = CELLS.search(text)
    if start is None:
        return Reached(detail=(text.strip() or LOADING).splitlines()[-1].removeprefix("thousandfold: "))
    total, stored, missing = map(int, start.groups())
    steps, measured = STEP.findall(text), MEASURED.findall(text)
    if steps:
        done, _, members, step, last_step, rate = (float(number) for number in steps[-1])
        computed = done - stored + members * step / max(last_step, 1)
        loss = LOSS.findall(text)
        detail = f"loss {loss[-1][0]} to {loss[-1][1]}" if loss else ""
        return Reached(int(done), total, computed / max(missing, 1), rate, detail)
    if measured:
        done = int(measured[-1][0])
        return Reached(stored + done, total, done / max(missing, 1))
    return Reached(stored, total)


def clean(text: str) -> str:
    """Replace each control character of a log by its escape sequence."""
    return CONTROLS.sub(lambda control: repr(control[0])[1:-1], text)


def clock(seconds: float) -> str:
    """Return a duration as text: `45 s`, `2 min 10 s`, `1 h 5 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 and whole < 600 else "")
    return f"{whole // 3600} h" + (f" {whole % 3600 // 60} min" if whole % 3600 // 60 else "")


def error_in(log: Path) -> str:
    """Return in a line why a job ended: the last error in its log with its fix, else the log's last line, or SILENT if the log is empty."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL))
            text = file.read().decode(errors="replace")
    except OSError:
        return SILENT
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    starts = [index for index, line in enumerate(lines) if ERROR.match(line)]
    message = lines[starts[-1] : starts[-1] + 2] if starts else lines[-1:] or [SILENT]
    message = [line.strip() for index, line in enumerate(message) if index == 0 or line.strip().startswith("fix: ")]
    return clean("; ".join(message).removeprefix("error: "))
