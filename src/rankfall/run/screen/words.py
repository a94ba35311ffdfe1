"""Durations, counts and errors in a few words."""

import re
from pathlib import Path

from rankfall.terminal import clean

READ = 16_384  # bytes of the end of a log
ERROR = re.compile(r"^(error: |checkpointed on |[\w.]*(Error|Exception|Interrupt|Unproved)\b)")


def clock(seconds: float) -> str:
    """Return a duration as text: `45 s`, `2 min 10 s`, `1 h 5 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 and whole < 600 else "")
    return f"{whole // 3600} h" + (f" {whole % 3600 // 60} min" if whole % 3600 // 60 else "")


def count(number: int, what: str) -> str:
    """Return a count with its noun: `1 job`, `12 jobs`."""
    return f"{number} {what}{'s' * (number != 1)}"


SILENT = "it ended without a word: killed, or taken away by the scheduler"


def error_in(log: Path) -> str:
    """Return in one line why a job ended: the last error in its log, or else the log's last line, or SILENT if the log is empty."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - READ))
            text = file.read().decode(errors="replace")
    except OSError:
        return SILENT
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if ERROR.match(line)]
    return clean((named or lines or [SILENT])[-1].removeprefix("error: "))
