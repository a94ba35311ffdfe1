"""Guards that a job which is forked from the server of its run does what it would do in a Python of its own, and ends as that would."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import config

import rankfall
from rankfall.report import tables
from rankfall.run.forks.client import ADDRESS, THREADS, run_in_fork
from rankfall.run.forks.start import Forks

pytestmark = pytest.mark.long

# A measure that needs no cells, and can wait. It asks for its process in a way that no reading of the source sees.
LAB = """
import os, time
from rankfall.nets.normalisers.softmax import softmax
NEEDS = "nothing"
TABLE = "path_counts"
def steps(context, *, waits: bool = False):
    def row(n):
        open("pid", "w").write(str(vars(os)["getpid"]()))
        time.sleep(0.02 if waits else 0)
        return [{"model": "m", "depth": 1, "heads": 1, "log10_paths": 0.0, "proportion": 0.5, "length": n}]
    return context.rows(range(2000 if waits else 2), row)
"""


class Run:
    """A folder with a configuration, and the server of a run of it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.package = folder, Path(rankfall.__file__).parents[1]
        measures = {name: {"measure": "forked_lab:steps", "waits": name == "waits"} for name in ("quick", "waits")}
        (folder / "config.json").write_text(json.dumps(config(measures=measures)))
        (folder / "forked_lab.py").write_text(LAB)
        self.environment = os.environ | {"PYTHONPATH": str(self.package)} | dict.fromkeys(THREADS, "1")

    def job(self, *words: str, **about: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "rankfall.cli", words[0], "--config", "config.json", *words[1:]]
        about = {"cwd": self.folder, "env": self.environment, "stdout": subprocess.PIPE} | about
        return subprocess.Popen(command, stderr=subprocess.STDOUT, text=True, **about)

    def done(self, *words: str, **about: Any) -> tuple[int, str]:
        """The exit code, and all that was said."""
        job = self.job(*words, **about)
        said, _ = job.communicate(timeout=60)
        return job.returncode, said

    def waiting(self) -> tuple[subprocess.Popen[str], int]:
        """A job that is at work, and the process that does it."""
        (self.folder / "pid").unlink(missing_ok=True)
        job = self.job("measure", "--measure", "waits", "--out", "waits.parquet")
        until(lambda: (self.folder / "pid").is_file() and (self.folder / "pid").read_text())
        return job, int((self.folder / "pid").read_text())


def until(there: Any) -> None:
    limit = time.monotonic() + 60
    while not there():
        assert time.monotonic() < limit
        time.sleep(0.01)


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    made = Run(tmp_path_factory.mktemp("forks"))
    before = os.getcwd(), dict(os.environ)
    os.chdir(made.folder)
    os.environ.update(made.environment)
    try:
        forks = Forks(made.folder / "config.json", 1, ["data", "measure quick"])
    finally:
        os.chdir(before[0])
        os.environ.clear()
        os.environ.update(before[1])
    made.environment[ADDRESS] = forks.address
    yield made
    process = forks.process
    forks.close()
    assert process.returncode == 0 and not Path(forks.address).exists()


def test_the_same_file_is_written_and_the_same_is_said(run: Run) -> None:
    said = {}
    for name, environment in (("forked", run.environment), ("alone", run.environment | {ADDRESS: ""})):
        said[name] = run.done("data", "--task", "sorting", "--out", f"{name}.parquet", env=environment)
    assert (
        said["forked"]
        == said["alone"]
        == (0, "sorting: 1 data sets; at most 0.0% of the test samples are training samples\n")
    )
    forked, alone = (tables.read(run.folder / f"{name}.parquet", "datasets") for name in said)
    assert forked.equals(alone)


def test_the_work_is_done_by_another_process_which_has_imported_the_libraries(run: Run) -> None:
    job, worker = run.waiting()
    assert worker != job.pid
    assert Path(f"/proc/{worker}/cmdline").read_bytes().split(b"\0")[2] == b"rankfall.run.forks.server"
    assert "libtorch" in Path(f"/proc/{worker}/maps").read_text()
    assert "libtorch" not in Path(f"/proc/{job.pid}/maps").read_text()
    job.kill()
    job.communicate()


def test_a_signal_is_passed_on(run: Run) -> None:
    """The measure keeps its rows and says that it can go on."""
    job, worker = run.waiting()
    job.send_signal(signal.SIGTERM)
    said, _ = job.communicate(timeout=60)
    assert job.returncode == 75 and "checkpointed on SIGTERM" in said
    assert not alive(worker)


def test_whoever_kills_the_job_kills_its_work(run: Run) -> None:
    job, worker = run.waiting()
    job.kill()
    job.communicate()
    until(lambda: not alive(worker))


def test_an_edit_after_the_server_began_is_seen(run: Run) -> None:
    """By a job's own plan, as without a server: of a component, and of a module that the server has imported."""
    first = run.done("measure", "--measure", "quick", "--out", "quick.parquet")
    assert first == (0, "")
    lab = run.folder / "forked_lab.py"
    lab.write_text(LAB.replace('"length": n', '"length": n + 1'))
    assert run.done("measure", "--measure", "quick", "--out", "quick.parquet")[0] == 0
    assert tables.read(run.folder / "quick.parquet", "path_counts")["length"].to_pylist() == [1, 2]
    lab.write_text(LAB)


def test_a_job_with_other_settings_does_its_own_work(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one does whose server is gone."""
    words = ["table", "--docs", "tables.md"]
    monkeypatch.chdir(run.folder)
    for name in {*os.environ} | {*run.environment}:
        monkeypatch.delenv(name, raising=False)
    for name, value in run.environment.items():
        monkeypatch.setenv(name, value)
    assert run_in_fork(words) == 0 and (run.folder / "tables.md").is_file()
    for name, value in {"OMP_NUM_THREADS": "3", "PYTHONPATH": "elsewhere", ADDRESS: "gone"}.items():
        with monkeypatch.context() as other:
            other.setenv(name, value)
            assert run_in_fork(words) is None
    monkeypatch.chdir(run.folder.parent)
    assert run_in_fork(words) is None
