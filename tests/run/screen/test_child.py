"""Guards how Ctrl-C reaches a run: Snakemake once, its jobs as a request to write their checkpoints."""

import os
import signal
import sys
import threading
import time

import pytest

from rankfall.run.screen.child import Child
from rankfall.run.screen.driver import Driver
from rankfall.run.screen.ending import say_failed
from rankfall.run.screen.logs import SILENT
from rankfall.run.screen.state import Job, RunState

# Stands for Snakemake: counts interruptions, and starts a job that says how it was ended, in a shell as Snakemake does.
PROGRAM = """
import signal, subprocess, sys, time
count = []
signal.signal(signal.SIGINT, lambda *_: count.append(1))
job = subprocess.Popen([sys.executable, "-c", '''
import signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, _: sys.exit(number))
print("ready", flush=True)
time.sleep(60)
'''], stdout=subprocess.PIPE) if sys.argv[1] == "job" else None
if job:
    job.stdout.readline()
print("begun", flush=True)
while not count:
    time.sleep(0.01)
time.sleep(0.3)
print("interrupted", len(count), "job", job and job.wait(), flush=True)
sys.exit(1)
"""


def interrupted(*words: str) -> str:
    child = Child([sys.executable, "-c", PROGRAM, *words], {})
    try:
        limit = time.monotonic() + 30
        while "begun" not in child.text():
            assert time.monotonic() < limit
            time.sleep(0.02)
        child.interrupt()
        assert child.code(30) == 1
        return child.text().splitlines()[-1]
    finally:
        child.close()


def test_snakemake_is_interrupted_once_and_its_job_asked_to_end() -> None:
    assert interrupted("job") == "interrupted 1 job 15"


def test_where_no_job_runs_here_snakemake_is_still_interrupted_once() -> None:
    """A second time would stop it while it cancels the jobs of a cluster."""
    assert interrupted("none") == "interrupted 1 job None"


# Starts a job after it was interrupted, as Snakemake does with what it has chosen; and asks a cluster something.
LATE = """
import signal, subprocess, sys, time
count = []
signal.signal(signal.SIGINT, lambda *_: count.append(1))
print("begun", flush=True)
while not count:
    time.sleep(0.01)
time.sleep(0.3)
job = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", "rankfall.cli"])
asks = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1)", "scancel"])
print("interrupted", len(count), "job", job.wait(), "asks", asks.wait(), flush=True)
sys.exit(1)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_job_that_starts_after_the_interruption_is_asked_to_end_too(number: int) -> None:
    """Also a run that is ended by SIGTERM, which Snakemake ignores here as it does while it waits for its jobs."""
    program = f"import signal; signal.signal(signal.SIGTERM, lambda *_: count.append(1))\n{LATE}"
    driver = Driver(Child([sys.executable, "-c", program], {}), RunState(time.time()))

    def interrupt() -> None:
        while "begun" not in driver.child.text():
            time.sleep(0.02)
        os.kill(os.getpid(), number)

    threading.Timer(0.0, interrupt).start()
    try:
        assert driver.follow(terminal=False) in (1, 130)
        assert driver.child.text().splitlines()[-1] == "interrupted 1 job -15 asks 0"
    finally:
        driver.child.close()


def test_the_third_time_ends_what_does_not_end() -> None:
    stubborn = (
        "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('begun', flush=True)\ntime.sleep(60)"
    )
    child = Child([sys.executable, "-c", stubborn], {})
    limit = time.monotonic() + 30
    while "begun" not in child.text():
        assert time.monotonic() < limit
        time.sleep(0.02)
    for _ in range(2):
        child.interrupt()
        assert child.code(0.2) is None
    child.interrupt()
    assert child.code(10) == -9
    child.close()


def test_the_error_of_a_failed_job_is_printed_once() -> None:
    job = Job("measure", "measure mine", "out", "mine.log", 0.0, error="ValueError: no")
    state = RunState(0.0, failed={"out": job})
    assert "ValueError" not in "".join(say_failed(state, "make run", None, listed=True))
    assert "ValueError" in next(say_failed(state, "make run", None, listed=False))
    job.error = SILENT  # which no line told when the job ended
    assert SILENT in next(say_failed(state, "make run", None, listed=True))
