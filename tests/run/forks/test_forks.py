"""Guards that a job which is forked from the server of its run does what it would do in a Python of its own, and ends as that would."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import wait_for
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
        self.folder = folder
        measures = {name: {"measure": "forked_lab:steps", "waits": name == "waits"} for name in ("quick", "waits")}
        (folder / "config.json").write_text(json.dumps(config(measures=measures)))
        (folder / "forked_lab.py").write_text(LAB)
        package = str(Path(rankfall.__file__).parents[1])
        self.environment = os.environ | {"PYTHONPATH": package} | dict.fromkeys(THREADS, "1")

    def start(self, verb: str, *words: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "rankfall.cli", verb, "--config", "config.json", *words],
            cwd=self.folder, env=self.environment | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def finish(self, *words: str, **environment: str) -> tuple[int, str]:
        """Return the exit code of a job, and its output."""
        job = self.start(*words, **environment)
        output, _ = job.communicate(timeout=60)
        return job.returncode, output

    def start_waiting(self) -> tuple[subprocess.Popen[str], int]:
        """Start a job. Return it when it is at work, and the process that does its work."""
        pid = self.folder / "pid"
        pid.unlink(missing_ok=True)
        job = self.start("measure", "--measure", "waits", "--out", "waits.parquet")
        wait_for("the measure", lambda: pid.is_file() and pid.read_text(), every=0.01)
        return job, int(pid.read_text())


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    made = Run(tmp_path_factory.mktemp("forks"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made.folder)
        for name, value in made.environment.items():
            patch.setenv(name, value)
        forks = Forks(made.folder / "config.json", 1, ["data", "measure quick"])
    made.environment[ADDRESS] = forks.address
    yield made
    process = forks.process
    forks.close()
    assert process.returncode == 0 and not Path(forks.address).exists()


def test_the_same_file_is_written_and_the_same_is_said(run: Run) -> None:
    for name, address in (("forked", run.environment[ADDRESS]), ("alone", "")):
        ending = run.finish("data", "--task", "sorting", "--out", f"{name}.parquet", **{ADDRESS: address})
        assert ending == (
            0,
            "making 1 data set\nsorting: 1 data set; at most 0.0% of the test samples are training samples\n",
        )
    forked, alone = (tables.read(run.folder / f"{name}.parquet", "datasets") for name in ("forked", "alone"))
    assert forked.equals(alone)


def test_the_work_is_done_by_another_process_which_ends_when_the_job_is_killed(run: Run) -> None:
    """It has imported the libraries, and the job has not."""
    job, worker = run.start_waiting()
    assert worker != job.pid
    assert Path(f"/proc/{worker}/cmdline").read_bytes().split(b"\0")[2] == b"rankfall.run.forks.server"
    assert "libtorch" in Path(f"/proc/{worker}/maps").read_text()
    assert "libtorch" not in Path(f"/proc/{job.pid}/maps").read_text()
    job.kill()
    job.communicate()
    wait_for("the end of the worker", lambda: not is_alive(worker))


def test_a_signal_is_passed_on(run: Run) -> None:
    """The measure keeps its rows and says that it can go on."""
    job, worker = run.start_waiting()
    job.send_signal(signal.SIGTERM)
    output, _ = job.communicate(timeout=60)
    assert job.returncode == 75 and "checkpointed on SIGTERM" in output
    assert not is_alive(worker)


def test_an_edit_after_the_server_began_is_seen(run: Run) -> None:
    """By a job's own plan, as without a server: of a component, and of a module that the server has imported."""
    words = ("measure", "--measure", "quick", "--out", "quick.parquet")
    assert run.finish(*words) == (0, "")
    lab = run.folder / "forked_lab.py"
    lab.write_text(LAB.replace('"length": n', '"length": n + 1'))
    assert run.finish(*words)[0] == 0
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
