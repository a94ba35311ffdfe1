"""A stack in training: K members' weights, optimiser state, hyperparameters and fates, as tensors with a leading axis K.

All parameters of a member lie in one row of `weights` (K, P) and the network's parameters are views into it, so that the
optimiser is a few operations on one tensor and a checkpoint is a handful of tensors. What differs between members (learning
rate, weight decay, clip norm, schedule, stop) is a column (K, 1).
"""

from functools import partial
from inspect import isclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rankfall import components
from rankfall.nets.network import Network, Shape, build
from rankfall.train.dropout import SeededDropout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankfall.design import Designed

RUNNING, STOPPED, DIVERGED = 0, 1, 2


class Stack:
    def __init__(self, cells: "Sequence[Designed]", shape: Shape, device: torch.device) -> None:
        self.cells = list(cells)
        self.training = cells[0].training
        self.device = device
        seeds = [cell.seed for cell in cells]
        dtype = getattr(torch, self.training.dtype)
        self.network: Network = build(cells[0].architecture, shape, len(cells), dtype)
        self.network.initialise(seeds)
        self.network.to(device)
        self.weights, self.layout = flatten(self.network)  # (K, P)
        self.parameters = [dict(self.network.named_parameters())[name] for name in self.layout]
        self.drop = SeededDropout(seeds, self.training.dropout)

        maker = components.load("optimizer", self.training.optimizer.name)
        self.optimizer = maker(**self.training.optimizer.options)
        self.slots = tuple(torch.zeros_like(self.weights) for _ in range(self.optimizer.slots))
        # Held rather than allocated at each step: fresh pages of this size cost more than the arithmetic on them.
        self.grads, self.scratch = torch.empty_like(self.weights), torch.empty_like(self.weights)
        column = partial(self.column, dtype=dtype)
        self.lr = column(cell.training.lr for cell in cells)
        decay = [cell.training.weight_decay for cell in cells]
        self.decay = column(decay) if any(decay) else None
        clip = [cell.training.clip for cell in cells]
        self.clip = column(torch.inf if c is None else c for c in clip) if any(c is not None for c in clip) else None
        self.schedules = [bound("schedule", cell.training.schedule) for cell in cells]

        self.fate = torch.zeros(len(cells), dtype=torch.int64, device=device)
        self.last_step = torch.zeros(len(cells), dtype=torch.int64, device=device)  # steps that counted for each member
        self.step_count = 0

    def column(self, values: Any, dtype: torch.dtype) -> Tensor:
        return torch.tensor(list(values), dtype=dtype, device=self.device).unsqueeze(1)  # (K, 1)

    def begin_epoch(self, epoch: int) -> None:
        factors = [schedule(epoch, self.training.epochs) for schedule in self.schedules]
        self.lr_now = self.lr * self.column(factors, self.lr.dtype)

    def step(self, inputs: Tensor, targets: Tensor, loss_of: Any) -> tuple[Tensor, Tensor]:
        """One batch for every member; returns each member's loss and number of right answers (K,), still on the device."""
        self.drop.step = self.step_count
        outputs = self.network(inputs, self.drop)
        loss, right = loss_of(outputs, targets)  # (K,), (K,)
        grads = torch.autograd.grad(loss.sum(), self.parameters)
        flat = torch.cat([g.flatten(1) for g in grads], 1, out=self.grads)  # (K, P)
        loss = loss.detach()
        square = torch.mul(flat, flat, out=self.scratch).sum(1, keepdim=True)  # (K, 1)
        # A member whose loss or gradient is no longer finite stops here, with the last weights that were; the others never notice.
        broken = ~(loss.isfinite() & square.squeeze(1).isfinite()) & (self.fate == RUNNING)
        self.fate.masked_fill_(broken, DIVERGED)
        running = self.fate == RUNNING
        self.step_count += 1
        self.last_step += running
        if self.clip is not None:
            flat.mul_((self.clip / (square.sqrt() + 1e-6)).clamp_(max=1.0))
        if self.device.type == "cuda" or not running.all():  # on a GPU asking would wait for the device
            flat.masked_fill_(~running.unsqueeze(1), 0.0)
        lr = self.lr_now * running.unsqueeze(1)
        with torch.no_grad():
            self.optimizer.step(self.weights, flat, self.slots, lr, self.decay, self.step_count, self.scratch)
        return loss, right

    def state(self) -> dict[str, Tensor]:
        """Everything that changes while training; random streams need no state, they are counted from the step."""
        slots = {f"slot{i}": slot for i, slot in enumerate(self.slots)}
        count = torch.tensor(self.step_count)
        return {"weights": self.weights, **slots, "fate": self.fate, "last_step": self.last_step, "step_count": count}

    def restore(self, state: dict[str, Tensor]) -> None:
        for name, value in self.state().items():
            value.copy_(state[name])
        self.step_count = int(state["step_count"])

    def tensors(self) -> dict[str, Tensor]:
        """The trained parameters by name, each (K, ...), for the store."""
        return {name: value.detach().contiguous() for name, value in zip(self.layout, self.parameters)}


def flatten(network: Network) -> tuple[Tensor, list[str]]:
    """Moves all parameters into one tensor (K, P) and leaves views of it in the network."""
    named = dict(network.named_parameters())
    rows = torch.cat([value.detach().flatten(1) for value in named.values()], 1)  # (K, P)
    start = 0
    for value in named.values():
        size = value[0].numel()
        value.data = rows[:, start : start + size].view(value.shape)
        start += size
    return rows, list(named)


def bound(kind: str, component: Any) -> Any:
    """A plan-time component as a callable: a class is made, a function has its options bound."""
    found = components.load(kind, component.name)
    return found(**component.options) if isclass(found) else partial(found, **component.options)
