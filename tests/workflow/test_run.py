"""Guards `make run` as a person meets it: on a terminal and in a pipe; Ctrl-C, a job that fails, a lock that is held, nothing to do."""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from checkout import CONFIG, Checkout, changed

MESS = re.compile(r"Traceback|RuleException|died with|WorkflowError|SNAKEMAKE|jobid")
LONG = changed(
    CONFIG,
    trainings={"short": {"lr": 1.0e-3, "epochs": 2500, "batch": 30}},
    compute={"engine": "plain", "stack": 4, "threads": 1},
)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "rankfall.cli", "run", *words]


def environment(checkout: Checkout) -> dict[str, str]:
    return checkout.environment() | {"PYTHONPATH": str(checkout.folder / "src"), "TERM": "xterm", "COLUMNS": "120"}


def piped(checkout: Checkout, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command(*words),
        cwd=checkout.folder,
        env=environment(checkout),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )


class Terminal:
    """A run on a terminal of its own."""

    def __init__(self, checkout: Checkout) -> None:
        self.pid, self.side = pty.fork()
        if self.pid == 0:
            os.chdir(checkout.folder)
            os.execve(sys.executable, command(), environment(checkout))
        self.text = ""

    def read(self, seconds: float = 0.2) -> bool:
        """What has appeared; False at the end."""
        if not select.select([self.side], [], [], seconds)[0]:
            return True
        try:
            new = os.read(self.side, 65536)
        except OSError:  # the other side is closed
            return False
        self.text += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", new.decode(errors="replace"))
        return bool(new)

    def until(self, pattern: str, seconds: float = 120.0) -> None:
        limit = time.monotonic() + seconds
        while not re.search(pattern, self.text):
            assert self.read() and time.monotonic() < limit, self.text[-3000:]

    def type(self, key: bytes) -> None:
        os.write(self.side, key)

    def end(self, seconds: float = 120.0) -> int:
        limit = time.monotonic() + seconds
        while self.read():
            assert time.monotonic() < limit, self.text[-3000:]
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def log_of_training(results: Path) -> str:
    """What the job of the first shard has said."""
    return "".join(path.read_text() for path in (results / "logs" / "train" / "sorting" / "0").glob("*.log"))


@pytest.mark.slow
def test_a_failing_job_is_one_line_with_its_log(base: Checkout, tmp_path: Path) -> None:
    checkout = base.copy(tmp_path / "checkout")
    figure = checkout.source("rank/paths/figure.py")
    begins = "    requested = {"
    assert begins in figure.read_text()
    figure.write_text(figure.read_text().replace(begins, f'    raise ValueError("no ink left")\n{begins}', 1))
    done = piped(checkout)
    assert done.returncode == 1
    said = [line for line in done.stdout.splitlines() if line.startswith("==> failed")]
    assert len(said) == 1 and "figure paths" in said[0] and "no ink left" in said[0]
    assert "results/logs/figure/paths/" in said[0]
    assert "to try these again: make run" in done.stdout
    assert not MESS.search(done.stdout)
    (checkout.folder / "config.yaml").write_text("name: tiny\ntask: {}\n")
    refused = piped(checkout)
    assert refused.returncode == 2
    (line,) = refused.stdout.splitlines()
    assert line.startswith("error: task: nothing reads this key")


@pytest.mark.slow
def test_what_fails_takes_nothing_else_with_it(base: Checkout, tmp_path: Path) -> None:
    """A measure and a figure fail: everything else is made, and the page, which says what it lacks; mended, the page lacks nothing."""
    checkout = base.copy(tmp_path / "checkout")
    broken = {"residuals": {}, "attention_identity": {"lengths": [4000]}, "scorecard": {}}
    figures = {"paths": {}, "residuals": {"where": {"layer": 99}}, "more": {"figure": "residuals"}}
    anywhere = {name: parts | {"position": "none"} for name, parts in CONFIG["architectures"].items()}
    config = changed(CONFIG, page=True, architectures=anywhere, measures=CONFIG["measures"] | broken)
    config["figures"] = CONFIG["figures"] | figures
    checkout.configure(config)
    done = piped(checkout)
    assert done.returncode == 1 and not MESS.search(done.stdout)
    assert "==> the page lacks table attention_identity, table scorecard, figure residuals\n" in done.stdout
    said = [
        line for line in done.stdout.splitlines() if "failed: " in line
    ]  # once for each time that it was tried, and at the end
    assert 4 <= len(said) <= 6 and all(
        "no finished cell has layer 99" in line or "raise its option test" in line for line in said
    )
    path = checkout.results / "report" / "index.html"
    path.unlink()
    plain = checkout.finish(checkout.start())  # Snakemake without `rankfall run` makes the same page
    assert plain.code == 1 and "it lacks table attention_identity, table scorecard, figure residuals" in plain.output
    page = path.read_text()
    assert 'id="lacks">This page lacks 3 tables or figures' in page and "no finished cell has layer 99" in page
    assert (checkout.results / "figures" / "more.png").is_file()
    checkout.configure(
        changed(config, measures=CONFIG["measures"] | {"residuals": {}}, figures={"paths": {}, "more": figures["more"]})
    )
    assert piped(checkout).returncode == 0
    assert 'id="lacks"' not in (checkout.results / "report" / "index.html").read_text()


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_done_and_a_second_run_is_refused_in_one_line(tmp_path: Path) -> None:
    checkout = Checkout.make(tmp_path / "checkout", LONG)
    terminal = Terminal(checkout)
    terminal.until(r"train sorting 0, \d+ s: 0 of 4 cells, [\d,]+ steps a second")
    assert "0 of 4 networks of the running jobs are trained" in terminal.text
    assert re.search(r"tiny: \d of 8 jobs, \d+ s, .* left", terminal.text)
    beside = piped(checkout)
    assert beside.returncode == 1
    (line,) = beside.stdout.splitlines()
    assert line.startswith("error: `make run` is working on these results (process ")
    words = [sys.executable, "-m", "rankfall.cli", "status", "--watch", "--config", "config.yaml"]
    watching = subprocess.Popen(
        words, cwd=checkout.folder, env=environment(checkout), stdout=subprocess.PIPE, text=True
    )
    assert watching.stdout is not None
    assert "running: train sorting 0" in watching.stdout.readline()
    terminal.type(b"\x03")
    assert terminal.end() == 130
    last = terminal.text.splitlines()[-2:]
    assert "Finished cells are kept, and training continues from its checkpoint" in last[0]
    assert last[1] == "==> to go on: make run"
    assert not MESS.search(terminal.text)
    assert " stopped: " in watching.communicate(timeout=60)[0] and watching.returncode == 1
    assert list((checkout.results / "store" / "checkpoints").glob("*.safetensors"))
    assert not list((checkout.folder / ".snakemake" / "locks").glob("*")), "nothing has to be unlocked"
    again = Terminal(checkout)
    assert again.end(600) == 0, again.text[-2000:]  # trains to the end, beside whatever else is tested at the same time
    assert "==> done: " in again.text
    assert "resuming a stack of" in log_of_training(checkout.results)


@pytest.mark.slow
def test_whoever_is_told_to_end_passes_it_on(tmp_path: Path) -> None:
    checkout = Checkout.make(tmp_path / "checkout", LONG)
    with (tmp_path / "said").open("w") as said:
        run = subprocess.Popen(command(), cwd=checkout.folder, env=environment(checkout), stdout=said, stderr=said)
    limit = time.monotonic() + 120
    while "step" not in log_of_training(checkout.results):
        assert run.poll() is None and time.monotonic() < limit
        time.sleep(0.2)
    run.send_signal(signal.SIGTERM)
    assert run.wait(60) != 0
    assert "checkpointed on SIGTERM" in log_of_training(checkout.results)
    assert "==> to go on: make run" in (tmp_path / "said").read_text()
    shutil.rmtree(checkout.folder / "results")


BREAKS = '''"""Softmax, which breaks at sequences of five tokens."""

from torch import Tensor


def breaks(logits: Tensor) -> Tensor:
    if logits.shape[-1] == 5:
        raise ValueError("five tokens are too many for me")
    return logits.softmax(-1)
'''


@pytest.mark.slow
def test_a_component_that_raises_in_training_is_named_at_the_end_by_status_and_on_the_page(tmp_path: Path) -> None:
    parts = {"normaliser": "softmax", "mlp": "none", "heads": 2, "width": 8, "depth": 2}
    config = changed(
        CONFIG,
        page=True,
        architectures={"soft": parts, "broken": parts | {"normaliser": "breaks"}},
        grid=[{"task": "sorting", "architecture": ["soft", "broken"], "training": "short", "seed": [0, 1]}],
        measures={"residuals": {}, "scorecard": {}},
        figures={"residuals": {"task": "sorting"}},
    )
    checkout = Checkout.make(tmp_path / "broken", config)
    checkout.source("nets/normalisers/breaks.py").write_text(BREAKS)
    done = piped(checkout)
    said = [line for line in done.stdout.splitlines() if line.startswith("==>")]
    assert done.returncode == 1
    assert not MESS.search(done.stdout)
    (named,) = [line for line in said if "five tokens are too many for me" in line]
    assert named.startswith("==> failed: sorting / broken / short") and "and 1 more" in named and "breaks.py" in named
    assert "==> 2 of 4 cells failed or diverged" in done.stdout
    cells = checkout.table("cells").to_pandas()
    assert cells.groupby("architecture").status.unique().str[0].to_dict() == {"broken": "failed", "soft": "done"}
    status = subprocess.run(
        [sys.executable, "-m", "rankfall.cli", "status", "--config", "config.yaml"],
        cwd=checkout.folder, env=environment(checkout), capture_output=True, text=True,
    )  # fmt: skip
    assert "broken" in status.stdout and "five tokens are too many for me" in status.stdout
    page = (checkout.results / "report" / "index.html").read_text()
    assert "2 are done, 2 failed" in page
    (failed,) = cells[cells.architecture == "broken"].reason.unique()
    assert "five tokens are too many for me" in failed
