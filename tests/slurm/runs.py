"""Throw-away checkouts that run on the test cluster, through the profile as it is."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from checkout import CONFIG, Checkout, changed
from cluster import wait_for

from rankfall.report.compare import differences

PROFILE = "workflow/profiles/slurm"

# Three cells that share a job, one after the other, each some seconds long and checkpointed every second.
SLOW = changed(
    CONFIG,
    trainings={"slow": {"lr": 1.0e-3, "epochs": 1000, "batch": 30}},
    grid=[{"task": "sorting", "architecture": "soft", "training": "slow", "seed": [0, 1, 2]}],
    measures={},
    figures={},
    compute={"threads": 1, "stack": 1, "checkpoint_seconds": 1},
)
CELLS = 3


class ClusterCheckout(Checkout):
    """A checkout whose jobs go to SLURM."""

    def command(self, *arguments: str) -> list[str]:
        site = ("--workflow-profile", PROFILE, "--latency-wait", "15")
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
        """Of the training jobs."""
        logs = (self.results / "logs" / "train").rglob("*.log")
        return "\n".join(path.read_text(errors="replace") for path in logs)

    def pids(self, verb: str = "train") -> list[int]:
        """Processes of a stage that work on this checkout's results."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                words = (path / "cmdline").read_bytes().decode(errors="replace").split("\0")
                here = (path / "cwd").resolve() == self.folder.resolve()
            except OSError:
                continue
            if here and words[1:4] == ["-m", "rankfall.cli", verb]:
                found.append(int(path.name))
        return found

    def finished(self) -> dict[str, tuple[int, int]]:
        """Stacks in the store: name -> (inode, time of writing). A stack that is trained again gets others."""
        found = {}
        for path in self.stacks():
            about = path.stat()
            found[path.name] = (about.st_ino, about.st_mtime_ns)
        return found

    def checkpoints(self) -> list[Path]:
        return list((self.results / "store" / "checkpoints").glob("*.safetensors"))

    def begun(self) -> bool:
        """Whether an unfinished cell has a checkpoint, beside one that is finished."""
        kept = self.kept() if self.stacks() else set()
        return any(cells and not kept.issuperset(cells) for cells in self.store.checkpoints.cells().values() if kept)

    def wait_until_in_the_middle(self) -> None:
        """Until one cell is finished and another has got as far as a checkpoint."""
        wait_for("a finished cell and a checkpoint", self.begun, 180, 0.02)
        assert len(self.finished()) < CELLS, "everything had finished: nothing is tested"


def nothing_lost(checkout: ClusterCheckout, finished: dict[str, tuple[int, int]], undisturbed: Checkout) -> None:
    """What was finished is as it was, nothing is there twice, and the tables are those of the undisturbed run."""
    now = checkout.finished()
    assert {name: now.get(name) for name in finished} == finished, "finished cells were trained again"
    assert len(now) == len(undisturbed.stacks())
    for table in ("cells", "training"):
        assert not differences(checkout.table(table), undisturbed.table(table))
    assert not checkout.checkpoints(), "a checkpoint was left behind"
    assert not list((checkout.results / "store").glob("damaged/*"))
