"""The progress of a training job: plain lines in its log, which `run/screen/logs.py` reads for the display of a run, and curves of loss and
accuracy for TensorBoard (`compute: {tensorboard: true}`).
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rankfall.errors import RankfallError
from rankfall.run.plan.cell import Cell
from rankfall.train.device import waits
from rankfall.train.loop import TrainingHistory, is_count
from rankfall.train.members import Members

PERIOD = 10.0  # seconds between two lines


class Progress:
    """Progress in cells done, member-steps per second, time left, and range of the loss."""

    def __init__(self) -> None:
        self.total = self.done = 0
        self.started = self.noted = time.monotonic()

    def begin(self, total: int, in_store: int) -> None:
        self.total, self.done = total, in_store
        self.started = self.noted = time.monotonic()
        self.note(f"{total} cells: {in_store} in store, {total - in_store} to train")

    def begin_stack(self, members: Members, steps_per_epoch: int, epochs: int) -> None:
        self.steps_per_epoch, self.total_steps = steps_per_epoch, steps_per_epoch * epochs
        self.stack_started, self.stack_first = time.monotonic(), members.step_count
        self.loss = ""

    def step(self, members: Members, history: TrainingHistory) -> None:
        now, step = time.monotonic(), members.step_count
        ended, due = step % self.steps_per_epoch == 0, now - self.noted >= PERIOD
        # On a GPU, training waits at the end of an epoch anyway, and nowhere else.
        if ended if waits(members.device) else due:
            self.loss = range_of_loss(members, history, self.steps_per_epoch)
        if due:
            self.noted = now
            rate = len(members) * (step - self.stack_first) / (now - self.stack_started)
            seconds_left = (self.total_steps - step) * len(members) / max(rate, 1e-9)
            self.note(
                f"{self.done}/{self.total} cells; stack of {len(members)}: step {step}/{self.total_steps}, "
                f"{rate:.0f} member-steps/s{self.loss}, {seconds_left:.0f} s left"
            )

    def cells_done(self, members: int) -> None:
        self.done += members

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def end(self) -> None:
        self.note(f"{self.done}/{self.total} cells in store after {time.monotonic() - self.started:.1f} s")


def range_of_loss(members: Members, history: TrainingHistory, steps_per_epoch: int) -> str:
    """Return the lowest and the highest loss of the members' current epoch, as text."""
    loss = history.mean("train", "loss", (members.step_count - 1) // steps_per_epoch)
    low, high = float(loss.nan_to_num(float("inf")).min()), float(loss.nan_to_num(0.0).max())
    return f", loss {low:.4g} to {high:.4g}"


class Curves:
    """Event files of the cells of a stack, one folder a cell. Without a `folder` nothing is written."""

    def __init__(self, folder: Path | None, cells: Sequence[Cell], epoch: int) -> None:
        self.writers = []
        self.epoch = epoch  # epochs that are written, by this job or before an interruption
        if folder is None:
            return
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise RankfallError(
                "compute: tensorboard: true needs TensorBoard, which is not installed\nfix: pip install tensorboard"
            ) from error
        for cell in cells:
            task, *names = cell.labels
            name = f"{', '.join(names)}, depth {cell.architecture.depth}, seed {cell.seed} ({cell.key[:6]})"
            self.writers.append(SummaryWriter(str(folder / task / name.replace("/", "_"))))

    def add(self, history: TrainingHistory, epoch: int) -> None:
        """Write the complete epochs that are not yet written. `epoch` is the number of complete epochs."""
        while self.writers and self.epoch < epoch:
            for name in [name for name in history.tensors if not is_count(name)]:
                split, _, metric = name.rpartition(".")
                values = history.mean(split, metric, self.epoch).tolist()
                for writer, value in zip(self.writers, values):
                    if value == value:  # NaN if the split was not evaluated, or if the member had stopped
                        writer.add_scalar(f"{metric}/{split}", value, self.epoch + 1)
            self.epoch += 1

    def close(self) -> None:
        for writer in self.writers:
            writer.close()
