"""Training, as arithmetic: batches, epochs, evaluation. Where results go and who watches is the caller's business.

Order of the data is drawn anew each epoch from the stream (seed, "order", epoch); so any step can be reached from a checkpoint
of the stack without replaying what came before.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from rankfall.streams import stream
from rankfall.tasks._dataset import Dataset
from rankfall.train.losses import LOSSES, asked
from rankfall.train.stack import DIVERGED, RUNNING, STOPPED, Stack

EVALUATIONS = 50  # at most about this many evaluations on the test set in a run


@dataclass(frozen=True)
class Data:
    """The data sets of K members, stacked; expanded rather than copied where members share one."""

    train_inputs: Tensor  # (K, N, T) or (K, N, T, C)
    train_targets: Tensor
    test_inputs: Tensor
    test_targets: Tensor
    chance: Tensor  # (K,)

    @staticmethod
    def of(datasets: list[Dataset], dtype: torch.dtype, device: torch.device) -> "Data":
        def stacked(name: str) -> Tensor:
            parts = [getattr(dataset, name) for dataset in datasets]
            shared = all(part is parts[0] for part in parts)
            together = parts[0].expand(len(parts), *parts[0].shape) if shared else torch.stack(parts)
            return together.to(device, dtype if together.is_floating_point() else None)

        return Data(
            stacked("train_inputs"),
            stacked("train_targets"),
            stacked("test_inputs"),
            stacked("test_targets"),
            torch.tensor([dataset.chance for dataset in datasets], dtype=torch.float64),
        )


def train(
    stack: Stack, data: Data, targets: str, history: dict[str, Tensor], after_step: Callable[[], None]
) -> dict[str, Tensor]:
    """Trains until the last epoch, or until no member is running; begins where the stack's step count says.

    `history` holds (K, epochs) tensors that are filled in place, so that a checkpoint of them is the record so far.
    """
    loss_of = LOSSES[targets]
    settings = stack.training
    steps = steps_per_epoch(data.train_inputs.shape[1], settings.batch)
    rows = torch.arange(len(stack.cells), device=stack.device).unsqueeze(1)  # (K, 1)
    stop_loss = [cell.training.stop_loss for cell in stack.cells]
    limit = torch.tensor([-torch.inf if s is None else s for s in stop_loss], device=stack.device)
    first = stack.step_count // steps
    for epoch in range(first, settings.epochs):
        if not (stack.fate == RUNNING).any():
            break
        stack.begin_epoch(epoch)
        # Who has stopped before has no part in this epoch's record, so that it does not depend on who shares the stack. Told from
        # the steps that counted, not from now: training may go on from the middle of the epoch.
        taking = (stack.fate == RUNNING) | ((stack.fate == DIVERGED) & (stack.last_step >= epoch * steps))
        order = orders(stack, data.train_inputs.shape[1], epoch)  # (K, N)
        for step in range(stack.step_count - epoch * steps, steps):
            index = order[:, step * settings.batch : (step + 1) * settings.batch]  # (K, B)
            inputs, wanted = data.train_inputs[rows, index], data.train_targets[rows, index]
            loss, right = stack.step(inputs, wanted, loss_of)
            # Sums over the epoch, weighted by the tokens asked; divided when the epoch is read.
            weight = asked(wanted)
            history["loss"][:, epoch] += torch.where(taking, loss * weight, 0)
            history["right"][:, epoch] += torch.where(taking, right, 0)
            history["asked"][:, epoch] += torch.where(taking, weight, 0)
            if step + 1 < steps:
                after_step()
        if (epoch + 1) % max(1, settings.epochs // EVALUATIONS) == 0 or epoch + 1 == settings.epochs:
            for name, value in zip(("test_loss", "test_accuracy"), evaluate(stack, data, targets)):
                history[name][:, epoch] = torch.where(taking, value, torch.nan)
        mean = history["loss"][:, epoch] / history["asked"][:, epoch]
        stack.fate.masked_fill_((mean < limit) & (stack.fate == RUNNING), STOPPED)
        after_step()  # only now is the epoch whole, and a checkpoint of it complete
    return history


def new_history(stack: Stack) -> dict[str, Tensor]:
    shape = (len(stack.cells), stack.training.epochs)
    sums = {name: torch.zeros(shape, dtype=torch.float64, device=stack.device) for name in ("loss", "right", "asked")}
    read = {
        name: torch.full(shape, torch.nan, dtype=torch.float64, device=stack.device)
        for name in ("test_loss", "test_accuracy")
    }
    return sums | read


@torch.no_grad()
def evaluate(stack: Stack, data: Data, targets: str, part: str = "test", batch: int = 256) -> tuple[Tensor, Tensor]:
    """Loss and accuracy (K,) of each member on its test (or train) set, without dropout."""
    loss_of = LOSSES[targets]
    loss = torch.zeros(len(stack.cells), dtype=torch.float64, device=stack.device)
    right, total = torch.zeros_like(loss), torch.zeros_like(loss)
    for inputs, wanted in batches(getattr(data, f"{part}_inputs"), getattr(data, f"{part}_targets"), batch):
        part_loss, part_right = loss_of(stack.network(inputs), wanted)
        weight = asked(wanted)
        loss += part_loss * weight
        right += part_right
        total += weight
    accuracy = right / total if targets == "classes" else torch.full_like(loss, torch.nan)
    return loss / total, accuracy


def batches(inputs: Tensor, targets: Tensor, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    for start in range(0, inputs.shape[1], size):
        yield inputs[:, start : start + size], targets[:, start : start + size]


def steps_per_epoch(samples: int, batch: int) -> int:
    return -(-samples // batch)  # the last batch may be smaller, as in the published runs


def orders(stack: Stack, samples: int, epoch: int) -> Tensor:
    """Which sample comes when (K, N)."""
    if not stack.training.shuffle:
        return torch.arange(samples, device=stack.device).expand(len(stack.cells), -1)
    drawn = [torch.from_numpy(stream(cell.seed, "order", epoch).permutation(samples)) for cell in stack.cells]
    return torch.stack(drawn).to(stack.device)
