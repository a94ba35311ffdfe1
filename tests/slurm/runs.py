"""Throw-away checkouts that run on the test cluster, through the profile as it is, but for how long it waits."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from checkout import CONFIG, Checkout, changed
from cluster import wait_for

from rankfall.report.runs import differences

PROFILE = "workflow/profiles/slurm"

# A real queue and file system want more.
HURRY = ("--latency-wait", "15", "--slurm-init-seconds-before-status-checks", "1")

# While Snakemake asks SLURM about its jobs it forgets them for that moment, and Ctrl-C then takes none of them out of the queue
# (`active_jobs.clear()` in snakemake_interface_executor_plugins/executors/remote.py). A real run asks once in 40 s and more, these tests
# twice a second: where they press Ctrl-C, nothing is asked (`impatient.py`).
UNASKED = ("--slurm-init-seconds-before-status-checks", "2")

# Three cells that share a job, one after the other, each two seconds long and checkpointed every quarter of a second.
SLOW = changed(
    CONFIG,
    trainings={"slow": {"lr": 1.0e-3, "epochs": 300, "batch": 30}},
    grid=[{"task": "sorting", "architecture": "soft", "training": "slow", "seed": [0, 1, 2]}],
    measures={},
    figures={},
    compute={"engine": "plain", "threads": 1, "stack": 1, "checkpoint_seconds": 0.25},
)
CELLS = 3


class ClusterCheckout(Checkout):
    """A checkout whose jobs go to SLURM."""

    asks_slurm = True

    def command(self, *arguments: str) -> list[str]:
        site = ("--workflow-profile", PROFILE, *HURRY)
        return [sys.executable, str(Path(__file__).with_name("impatient.py")), *site, *arguments]

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        process = super().start(*arguments)
        self.started = [*getattr(self, "started", []), process]
        return process

    def abandon(self) -> None:
        """Kill what still runs here."""
        for process in getattr(self, "started", []):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def log(self) -> str:
        """Return the logs of the training jobs."""
        logs = (self.results / "logs" / "train").rglob("*.log")
        return "\n".join(path.read_text(errors="replace") for path in logs)

    def pids(self, verb: str = "train") -> list[int]:
        """Return the processes of a stage that work on this checkout's results."""
        pids = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                words = (path / "cmdline").read_bytes().decode(errors="replace").split("\0")
                here = (path / "cwd").resolve() == self.folder.resolve()
            except OSError:
                continue
            if here and words[1:4] == ["-m", "rankfall.cli", verb]:
                pids.append(int(path.name))
        return pids

    def workers(self) -> list[int]:
        """Return the workers that a training job has started."""
        return [pid for pid in self.pids() if b"--worker" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]

    def finished(self) -> dict[str, tuple[int, int]]:
        """Return name of each stack in the store -> (inode, time of writing). A stack that is trained again gets others."""
        stats = {path.name: path.stat() for path in self.stacks()}
        return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in stats.items()}

    def checkpoints(self) -> list[Path]:
        return list((self.results / "store" / "checkpoints").glob("*.safetensors"))

    def begun(self) -> bool:
        """Return whether an unfinished cell has a checkpoint, beside one that is finished."""
        kept = self.kept() if self.stacks() else set()
        return any(cells and not kept.issuperset(cells) for cells in self.store.find_checkpoints().values() if kept)

    def wait_until_in_the_middle(self) -> None:
        """Wait until one cell is finished and another has got as far as a checkpoint. There the training process stands still, so that what
        a test sees is what it acts on, on a slow machine as well: until SLURM ends its job, which sets it going first, or `go_on`."""
        wait_for("a finished cell and a checkpoint", self._held, 180, 0.02)

    def _held(self) -> bool:
        assert len(self.finished()) < CELLS, "everything had finished: nothing is tested"
        if not self.begun():
            return False
        if self.hold() and self.begun():
            return True
        self.go_on()  # it has finished that cell meanwhile
        return False

    def hold(self) -> list[int]:
        """Stop the training processes where they are."""
        held = self.pids()
        for pid in held:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        wait_for("the process to stop", lambda: all(map(stands, held)))
        return held

    def go_on(self) -> None:
        """Set going what stands still, if it is still there."""
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def stands(pid: int) -> bool:
    """Return whether a process was stopped, or has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
    return next(line.split()[1] in "TZX" for line in status.splitlines() if line.startswith("State:"))


def check_nothing_lost(checkout: ClusterCheckout, finished: dict[str, tuple[int, int]], undisturbed: Checkout) -> None:
    """Check that what was finished is as it was, nothing is there twice, and the tables are those of the undisturbed run."""
    now = checkout.finished()
    assert {name: now.get(name) for name in finished} == finished, "finished cells were trained again"
    assert len(now) == len(undisturbed.stacks())
    for table in ("cells", "training"):
        assert not differences(checkout.table(table), undisturbed.table(table))
    assert not checkout.checkpoints(), "a checkpoint was left behind"
    assert not list((checkout.results / "store").glob("damaged/*"))
