"""Guards `make run` as a person meets it: on a terminal and in a pipe; Ctrl-C, a job that fails, a lock that is held, nothing to do."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from checkout import CONFIG, Checkout, changed

pytestmark = pytest.mark.slow

MESS = re.compile(r"Traceback|RuleException|died with|WorkflowError|SNAKEMAKE|jobid")
LONG = changed(
    CONFIG,
    trainings={"short": {"lr": 1.0e-3, "epochs": 2500, "batch": 30}},
    compute={"engine": "plain", "stack": 4, "threads": 1},
)


def command(verb: str = "run", *words: str) -> list[str]:
    return [sys.executable, "-m", "rankfall.cli", verb, *words]


def environment(checkout: Checkout) -> dict[str, str]:
    return checkout.environment() | {"PYTHONPATH": str(checkout.folder / "src"), "TERM": "xterm", "COLUMNS": "120"}


def run(checkout: Checkout, *words: str) -> tuple[int, str]:
    """Run a command, by default `rankfall run`, in a pipe. Return its exit code and output."""
    done = subprocess.run(
        command(*words), cwd=checkout.folder, env=environment(checkout), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
    )  # fmt: skip
    return done.returncode, done.stdout


class Terminal:
    """A run on a terminal of its own."""

    def __init__(self, checkout: Checkout) -> None:
        self.pid, self.side = pty.fork()
        if self.pid == 0:
            os.chdir(checkout.folder)
            os.execve(sys.executable, command(), environment(checkout))
        self.text = ""

    def read(self, seconds: float = 0.2) -> bool:
        """Read what has appeared. Return False at the end."""
        if not select.select([self.side], [], [], seconds)[0]:
            return True
        try:
            new = os.read(self.side, 65536)
        except OSError:  # the other side is closed
            return False
        self.text += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", new.decode(errors="replace"))
        return bool(new)

    def read_until(self, pattern: str, seconds: float = 120.0) -> None:
        limit = time.monotonic() + seconds
        while not re.search(pattern, self.text):
            assert self.read() and time.monotonic() < limit, self.text[-3000:]

    def end(self, seconds: float = 120.0) -> int:
        """Read to the end. Return the exit code."""
        limit = time.monotonic() + seconds
        while self.read():
            assert time.monotonic() < limit, self.text[-3000:]
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def read_training_log(checkout: Checkout) -> str:
    logs = checkout.results / "logs" / "train" / "sorting" / "0"
    return "".join(path.read_text() for path in logs.glob("*.log"))


def test_a_failing_job_is_one_line_with_its_log(base: Checkout, tmp_path: Path) -> None:
    checkout = base.copy(tmp_path / "checkout")
    figure, begins = checkout.source("rank/paths/figure.py"), "    requested = {"
    assert begins in figure.read_text()
    figure.write_text(figure.read_text().replace(begins, f'    raise ValueError("no ink left")\n{begins}', 1))
    code, output = run(checkout)
    (line,) = [line for line in output.splitlines() if line.startswith("==> failed")]
    assert code == 1 and "figure paths" in line and "no ink left" in line and "results/logs/figure/paths/" in line
    assert "to try these again: make run" in output and not MESS.search(output)
    (checkout.folder / "config.yaml").write_text("name: tiny\ntask: {}\n")
    code, output = run(checkout)
    (line,) = output.splitlines()
    assert code == 2 and line.startswith("error: task: nothing reads this key")


def test_what_fails_takes_nothing_else_with_it(base: Checkout, tmp_path: Path) -> None:
    """A measure and a figure fail: everything else is made, and the page, which says what it lacks; mended, the page lacks nothing."""
    checkout = base.copy(tmp_path / "checkout")
    measures = CONFIG["measures"] | {"residuals": {}, "attention_identity": {"lengths": [4000]}, "scorecard": {}}
    figures = {"paths": {}, "residuals": {"where": {"layer": 99}}, "more": {"figure": "residuals"}}
    anywhere = {name: parts | {"position": "none"} for name, parts in CONFIG["architectures"].items()}
    config = changed(CONFIG, page=True, architectures=anywhere, measures=measures, figures=figures)
    checkout.configure(config)
    code, output = run(checkout)
    lacking = "table attention_identity, table scorecard, figure residuals"
    assert code == 1 and not MESS.search(output) and f"==> the page lacks {lacking}\n" in output
    # Once for each time that it was tried, and at the end.
    lines = [line for line in output.splitlines() if "failed: " in line]
    assert 4 <= len(lines) <= 6
    assert all("no finished cell has layer 99" in line or "raise its option test" in line for line in lines)
    path = checkout.results / "report" / "index.html"
    path.unlink()
    plain = checkout.finish(checkout.start())  # Snakemake without `rankfall run` makes the same page
    assert plain.code == 1 and f"it lacks {lacking}" in plain.output
    page = path.read_text()
    assert 'id="lacks">This page lacks what could not be made (3): ' in page and "no finished cell has layer 99" in page
    assert (checkout.results / "figures" / "more.png").is_file()
    measures = CONFIG["measures"] | {"residuals": {}}
    checkout.configure(changed(config, measures=measures, figures={"paths": {}, "more": figures["more"]}))
    assert run(checkout)[0] == 0
    assert 'id="lacks"' not in path.read_text()


def test_ctrl_c_keeps_what_is_done_and_a_second_run_is_refused_in_one_line(tmp_path: Path) -> None:
    checkout = Checkout.make(tmp_path / "checkout", LONG)
    terminal = Terminal(checkout)
    terminal.read_until(r"train sorting 0, \d+ s: 0 of 4 cells, [\d,]+ steps a second")
    assert "0 of 4 networks of the running jobs are trained" in terminal.text
    assert re.search(r"tiny: \d of 8 jobs, \d+ s, .* left", terminal.text)
    code, output = run(checkout)
    (line,) = output.splitlines()
    assert code == 1 and line.startswith("error: `make run` is working on these results (process ")
    watching = subprocess.Popen(
        command("status", "--watch", "--config", "config.yaml"), cwd=checkout.folder, env=environment(checkout),
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert watching.stdout is not None and "running: train sorting 0" in watching.stdout.readline()
    os.write(terminal.side, b"\x03")
    assert terminal.end() == 130
    *_, kept, again = terminal.text.splitlines()
    assert "Finished cells are kept, and training continues from its checkpoint" in kept
    assert again == "==> to go on: make run" and not MESS.search(terminal.text)
    assert " stopped: " in watching.communicate(timeout=60)[0] and watching.returncode == 1
    assert list((checkout.results / "store" / "checkpoints").glob("*.safetensors"))
    assert not list((checkout.folder / ".snakemake" / "locks").glob("*")), "nothing has to be unlocked"
    terminal = Terminal(checkout)
    # It trains to the end, beside whatever else is tested at the same time.
    assert terminal.end(600) == 0, terminal.text[-2000:]
    assert "==> done: " in terminal.text
    assert "resuming a stack of" in read_training_log(checkout)


def test_whoever_is_told_to_end_passes_it_on(tmp_path: Path) -> None:
    checkout, output = Checkout.make(tmp_path / "checkout", LONG), tmp_path / "output"
    with output.open("w") as file:
        process = subprocess.Popen(command(), cwd=checkout.folder, env=environment(checkout), stdout=file, stderr=file)
    limit = time.monotonic() + 120
    while "step" not in read_training_log(checkout):
        assert process.poll() is None and time.monotonic() < limit
        time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) != 0
    assert "checkpointed on SIGTERM" in read_training_log(checkout)
    assert "==> to go on: make run" in output.read_text()


BREAKS = '''"""Softmax, which breaks at sequences of five tokens."""

from torch import Tensor


def breaks(logits: Tensor) -> Tensor:
    if logits.shape[-1] == 5:
        raise ValueError("five tokens are too many for me")
    return logits.softmax(-1)
'''


def test_a_component_that_raises_in_training_is_named_at_the_end_by_status_and_on_the_page(tmp_path: Path) -> None:
    why, soft = "five tokens are too many for me", CONFIG["architectures"]["soft"]
    config = changed(
        CONFIG,
        page=True,
        architectures={"soft": soft, "broken": soft | {"normaliser": "breaks"}},
        grid=[CONFIG["grid"][0] | {"architecture": ["soft", "broken"]}],
        measures={"residuals": {}, "scorecard": {}},
        figures={"residuals": {"task": "sorting"}},
    )
    checkout = Checkout.make(tmp_path / "broken", config)
    checkout.source("nets/normalisers/breaks.py").write_text(BREAKS)
    code, output = run(checkout)
    assert code == 1 and not MESS.search(output)
    (line,) = [line for line in output.splitlines() if line.startswith("==>") and why in line]
    assert line.startswith("==> failed: sorting / broken / short") and "and 1 more" in line and "breaks.py" in line
    assert "==> 2 of 4 cells failed or diverged" in output
    rows = checkout.table("cells").to_pylist()
    assert {(row["architecture"], row["status"]) for row in rows} == {("soft", "done"), ("broken", "failed")}
    assert all(why in row["reason"] for row in rows if row["status"] == "failed")
    _, output = run(checkout, "status", "--config", "config.yaml")
    assert "broken" in output and why in output
    assert "2 done, 2 failed" in (checkout.results / "report" / "index.html").read_text()
