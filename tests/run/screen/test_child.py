"""Guards how Ctrl-C reaches a run: Snakemake once, its jobs as a request to write their checkpoints; and that a run which is stopped takes
its own jobs out of SLURM's queue, whatever Snakemake forgot, and nobody else's."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from rankfall.run.screen import child
from rankfall.run.screen.child import Child
from rankfall.run.screen.driver import Driver
from rankfall.run.screen.state import RunState
from rankfall.run.screen.watch import RunRecord

# Each program stands for Snakemake, and counts interruptions.
COUNT = """
import signal, subprocess, sys, time
count = []
signal.signal(signal.SIGINT, lambda *_: count.append(1))
"""
WAIT = """
print("begun", flush=True)
while not count:
    time.sleep(0.01)
time.sleep(0.3)
"""
# It starts a job that says how it was ended, in a shell as Snakemake does.
EARLY = f"""{COUNT}
job = subprocess.Popen([sys.executable, "-c", '''
import signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, _: sys.exit(number))
print("ready", flush=True)
time.sleep(60)
'''], stdout=subprocess.PIPE) if sys.argv[1] == "job" else None
if job:
    job.stdout.readline()
{WAIT}
print("interrupted", len(count), "job", job and job.wait(), flush=True)
sys.exit(1)
"""
# It starts a job after it was interrupted, as Snakemake does with what it has chosen; and asks a cluster something. It ignores SIGTERM,
# as Snakemake does while it waits for its jobs.
LATE = f"""{COUNT}
signal.signal(signal.SIGTERM, lambda *_: count.append(1))
{WAIT}
job = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", "rankfall.cli"])
asks = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1)", "scancel"])
print("interrupted", len(count), "job", job.wait(), "asks", asks.wait(), flush=True)
sys.exit(1)
"""
STUBBORN = (
    "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('begun', flush=True)\ntime.sleep(60)"
)


def start(program: str, *words: str) -> Child:
    return Child([sys.executable, "-c", program, *words], {})


def wait_until_begun(child: Child) -> None:
    limit = time.monotonic() + 30
    while "begun" not in child.text():
        assert time.monotonic() < limit
        time.sleep(0.02)


@pytest.mark.parametrize(("job", "ending"), [("job", "15"), ("none", "None")])
def test_snakemake_is_interrupted_once_and_its_job_asked_to_end(job: str, ending: str) -> None:
    """Also where no job runs here: a second time would stop it while it cancels the jobs of a cluster."""
    child = start(EARLY, job)
    try:
        wait_until_begun(child)
        child.interrupt()
        assert child.code(30) == 1
        assert child.text().splitlines()[-1] == f"interrupted 1 job {ending}"
    finally:
        child.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_job_that_starts_after_the_interruption_is_asked_to_end_too(number: int, tmp_path: Path) -> None:
    snakemake, state = start(LATE), RunState(time.time())
    record = RunRecord(tmp_path, tmp_path / "config.yaml", "rankfall run", snakemake.process.pid, state)
    driver = Driver(snakemake, state, "title", tmp_path, record)

    def interrupt() -> None:
        wait_until_begun(driver.child)
        os.kill(os.getpid(), number)

    threading.Thread(target=interrupt).start()
    try:
        assert driver.follow(terminal=False) in (1, 130)
        assert driver.child.text().splitlines()[-1] == "interrupted 1 job -15 asks 0"
    finally:
        driver.child.close()


def test_the_third_time_ends_what_does_not_end() -> None:
    child = start(STUBBORN)
    wait_until_begun(child)
    for _ in range(2):
        child.interrupt()
        assert child.code(0.2) is None
    child.interrupt()
    assert child.code(10) == -9
    child.close()


OURS = "rankfall_0f3c2b1a-1111-4222-8333-123456789abc"
OTHER = "rankfall_0f3c2b1a-1111-4222-8333-123456789abd"
PROGRAMS = {
    "squeue": '#!/bin/sh\necho "$@" >> {folder}/asked\ncat {folder}/queue\n',
    "scancel": '#!/bin/sh\nfor job in "$@"; do echo $job >> {folder}/cancelled; '
    'sed -i "s/^$job [A-Z]* /$job COMPLETING /" {folder}/queue; done\n',
}


def test_its_own_jobs_are_cancelled_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a queue of two runs, as SLURM would answer if it took no notice of what was asked for."""
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text.format(folder=tmp_path))
        (tmp_path / name).chmod(0o755)
    jobs = f"1 RUNNING {OURS}\n2 PENDING {OURS}\n3 COMPLETING {OURS}\n4 RUNNING {OTHER}\n5_2 PENDING {OURS}\n6 PENDING x{OURS}\n"
    (tmp_path / "queue").write_text(jobs)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(child, "PAUSE", 0.0)
    assert child.cancel_left(OURS) == ["1", "2", "5_2"]
    assert (tmp_path / "cancelled").read_text().split() == ["1", "2", "5_2"]
    assert f"--user={os.getuid()} --name={OURS}" in (tmp_path / "asked").read_text()
    assert child.cancel_left(OURS) == []
