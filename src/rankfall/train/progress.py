"""The progress of a training job: bars on a terminal, plain lines in a log file."""

import sys
import time
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from rankfall.train.device import waits

if TYPE_CHECKING:
    from rankfall.train.loop import TrainingHistory
    from rankfall.train.members import Members


class Progress:
    """Progress in cells done, member-steps per second, time left, and range of the loss."""

    def __init__(self, out: TextIO | None = None, every: float = 10.0) -> None:
        self.out, self.every = out or sys.stderr, every
        self.console = Console(file=self.out)
        self.bars: Bars | None = None
        self.total = self.done = 0
        self.started = self.said = time.monotonic()

    def begin(self, total: int, in_store: int) -> None:
        self.total, self.done = total, in_store
        self.started = self.said = time.monotonic()
        self.note(f"{total} cells: {in_store} in store, {total - in_store} to train")
        if self.console.is_terminal and total > in_store:
            self.bars = Bars(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[detail]}"),
                TimeRemainingColumn(),
                console=self.console,
            )
            self.cells = self.bars.add_task("cells", total=total, completed=in_store, detail="")
            self.steps = self.bars.add_task("steps", total=None, detail="")
            self.bars.start()

    def begin_stack(self, members: "Members", steps_per_epoch: int, epochs: int) -> None:
        self.steps_per_epoch, self.total_steps = steps_per_epoch, steps_per_epoch * epochs
        self.stack_started, self.stack_first = time.monotonic(), members.step_count
        self.loss = ""
        if self.bars:
            self.bars.reset(self.steps, total=self.total_steps, completed=members.step_count, detail="")

    def step(self, members: "Members", history: "TrainingHistory") -> None:
        now = time.monotonic()
        ended = members.step_count % self.steps_per_epoch == 0
        if ended and waits(members.device):  # training waits here anyway, and nowhere else
            self.loss = range_of_loss(members, history, self.steps_per_epoch)
        if now - self.said < (0.5 if self.bars else self.every):
            return
        self.said = now
        step = members.step_count
        rate = len(members) * (step - self.stack_first) / (now - self.stack_started)
        if not waits(members.device):
            self.loss = range_of_loss(members, history, self.steps_per_epoch)
        detail = f"{rate:.0f} member-steps/s{self.loss}"
        if self.bars:
            self.bars.update(self.steps, completed=step, detail=detail)
        else:
            left = (self.total_steps - step) * len(members) / max(rate, 1e-9)
            self.note(
                f"{self.done}/{self.total} cells; stack of {len(members)}: step {step}/{self.total_steps}, "
                f"{detail}, {left:.0f} s left"
            )

    def cells_done(self, members: int) -> None:
        self.done += members
        if self.bars:
            self.bars.update(self.cells, completed=self.done)

    def note(self, text: str) -> None:
        if self.bars:
            self.bars.console.print(text, highlight=False)
        else:
            print(text, file=self.out, flush=True)

    def end(self) -> None:
        if self.bars:
            self.bars.stop()
            self.bars = None
        self.note(f"{self.done}/{self.total} cells in store after {time.monotonic() - self.started:.1f} s")


def range_of_loss(members: "Members", history: "TrainingHistory", steps_per_epoch: int) -> str:
    """Return the lowest and the highest loss of the members' current epoch, as text."""
    loss = history.mean("train", "loss", (members.step_count - 1) // steps_per_epoch)
    low, high = float(loss.nan_to_num(float("inf")).min()), float(loss.nan_to_num(0.0).max())
    return f", loss {low:.4g} to {high:.4g}"
