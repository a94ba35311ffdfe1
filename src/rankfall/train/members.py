"""Members in training: K copies of one module, each with its own weights, hyperparameters and status, as tensors with a leading axis K.

The module is any `nn.Module` whose parameters are (K, ...) and whose members do not mix: a network of a cell, or K small probes. All
parameters of a member are in one row of `weights` (K, P), and the module's parameters are views into it. So the optimiser is a few
operations on one tensor, and a checkpoint is a handful of tensors. What differs between members (learning rate, weight decay, clip norm,
schedule, stop) is a column (K, 1).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor, nn

from rankfall.nets.primitives import no_dropout
from rankfall.train.device import waits
from rankfall.train.dropout import dropout_of
from rankfall.train.objectives._base import Graded, Objective, Samples
from rankfall.train.schedules.constant import constant

RUNNING, STOPPED, DIVERGED = 0, 1, 2


@dataclass(frozen=True)
class ParameterEntry:
    """One parameter of a member in its row of weights: row[start : start + size] has this shape."""

    name: str
    role: str  # its use, as passed to an init; empty if the module does not declare it
    kind: str  # "weight", "bias" or "constant"
    shape: tuple[int, ...]
    start: int


class Optimizer(Protocol):
    """The interface of optimisers (see `optimizers/`).

    `step` changes weights (K, P) in place. `slots` is the number of state tensors (K, P). An optimiser that treats parameters by shape or
    role also has a method `of`, which takes the entries of a row and returns the optimiser for them.
    """

    @property
    def slots(self) -> int: ...

    def step(
        self,
        weights: Tensor,
        grads: Tensor,
        slots: tuple[Tensor, ...],
        lr: Tensor,
        decay: Tensor | None,
        t: int,
        scratch: Tensor,
    ) -> None: ...


@dataclass(frozen=True)
class Hyperparameters:
    """The hyperparameters of one member."""

    lr: float = 1e-3
    weight_decay: float = 0.0
    clip: float | None = None  # largest norm of the gradient
    stop_loss: float | None = None  # the first epoch below this mean loss is the last
    schedule: Callable[[int, int], float] = constant  # (epoch, epochs) -> factor of lr


class StepEngine(Protocol):
    """An engine that computes steps of members in place of autograd (see `train/captured.py`)."""

    name: str

    def steps_at_once(self, members: int) -> int:
        """Return the fastest number of steps to compute at once. No result depends on it."""
        ...

    def steps(self, members: "Members", objective: Objective, batches: Sequence[Samples]) -> list[Graded]:
        """Return the results of `Members.steps`, which may differ only in rounding."""
        ...

    def grade(self, members: "Members", objective: Objective, batch: Samples) -> Graded:
        """Return the result of `Members.grade`, which may differ only in rounding, for samples of the training length."""
        ...


class Members:
    """K members in training, with their weights, optimiser and status."""

    engine: StepEngine | None = None  # None: the plain engine, autograd, which supports everything

    def __init__(
        self,
        module: nn.Module,
        seeds: Sequence[int],
        optimizer: Optimizer,
        hyperparameters: Sequence[Hyperparameters],
        dropout: float = 0.0,
    ) -> None:
        """Take a module that is initialised and on its device. `seeds` name the members' random streams."""
        self.module, self.seeds = module, list(seeds)
        self.weights, self.layout = flatten(module, len(self.seeds))  # (K, P)
        self.optimizer: Optimizer = optimizer.of(entries(module)) if hasattr(optimizer, "of") else optimizer
        self.parameters = [dict(module.named_parameters())[name] for name in self.layout]
        self.device = self.weights.device
        self.dropout = dropout_of(self.seeds, dropout, self.device)

        self.slots = tuple(torch.zeros_like(self.weights) for _ in range(optimizer.slots))
        # Allocated once: at each step fresh pages of this size would cost more than the arithmetic on them.
        self.grads, self.scratch = torch.empty_like(self.weights), torch.empty_like(self.weights)
        self.lr = self.lr_now = self.column(h.lr for h in hyperparameters)
        decays = [h.weight_decay for h in hyperparameters]
        self.decay = self.column(decays) if any(decays) else None
        clips = [h.clip for h in hyperparameters]
        clipped = any(clip is not None for clip in clips)
        self.clip = self.column(torch.inf if clip is None else clip for clip in clips) if clipped else None
        limits = [-torch.inf if h.stop_loss is None else h.stop_loss for h in hyperparameters]
        self.stop_loss = torch.tensor(limits, device=self.device)  # (K,)
        self.schedules = [h.schedule for h in hyperparameters]

        self.status = torch.zeros(len(self.seeds), dtype=torch.int64, device=self.device)
        self.last_step = torch.zeros_like(self.status)  # steps that counted for each member
        self.step_count = 0

    def __len__(self) -> int:
        return len(self.seeds)

    def column(self, values: Iterable[float]) -> Tensor:
        return torch.tensor(list(values), dtype=self.weights.dtype, device=self.device).unsqueeze(1)  # (K, 1)

    def begin_epoch(self, epoch: int, epochs: int) -> None:
        self.lr_now = self.lr * self.column(schedule(epoch, epochs) for schedule in self.schedules)

    @property
    def steps_at_once(self) -> int:
        """The best number of batches to pass to `steps` at once."""
        return 1 if self.engine is None else self.engine.steps_at_once(len(self))

    def steps(self, objective: Objective, batches: Sequence[Samples]) -> list[Graded]:
        """Take a step for each batch, in order, for every member. The results are still on the device."""
        if self.engine is not None:
            return self.engine.steps(self, objective, batches)
        return [self.plain_step(objective, batch) for batch in batches]

    def step(self, objective: Objective, batch: Samples) -> Graded:
        """Take one step."""
        return self.steps(objective, [batch])[0]

    def plain_step(self, objective: Objective, batch: Samples) -> Graded:
        """Take one step through autograd."""
        drop = self.dropout.at(self.step_count) if self.dropout else no_dropout
        graded = objective(self.module, batch, drop)
        self.differentiate(graded.loss)
        self.update(graded.loss)
        return replace(graded, loss=graded.loss.detach())

    def grade(self, objective: Objective, batch: Samples) -> Graded:
        """Return the result on a batch without a step and without dropout."""
        if self.engine is not None:
            return self.engine.grade(self, objective, batch)
        return objective(self.module, batch)

    def differentiate(self, loss: Tensor) -> None:
        """Write the gradient of each member's own loss to `grads` (K, P)."""
        grads = torch.autograd.grad(loss.sum(), self.parameters)
        torch.cat([g.flatten(1) for g in grads], 1, out=self.grads)

    def update(self, loss: Tensor) -> None:
        """Take one step of the optimiser along `grads`, which are the gradients of these losses (K,)."""
        flat = self.grads
        square = torch.mul(flat, flat, out=self.scratch).sum(1, keepdim=True)  # (K, 1)
        # A member whose loss or gradient is no longer finite stops here with its last finite weights. Other members are not affected.
        broken = ~(loss.detach().isfinite() & square.squeeze(1).isfinite()) & (self.status == RUNNING)
        self.status.masked_fill_(broken, DIVERGED)
        running = self.status == RUNNING
        self.step_count += 1
        self.last_step += running
        if self.clip is not None:
            flat.mul_((self.clip / (square.sqrt() + 1e-6)).clamp_(max=1.0))
        if waits(self.device) or not running.all():
            flat.masked_fill_(~running.unsqueeze(1), 0.0)
        lr = self.lr_now * running.unsqueeze(1)
        with torch.no_grad():
            self.optimizer.step(self.weights, flat, self.slots, lr, self.decay, self.step_count, self.scratch)

    def state(self) -> dict[str, Tensor]:
        """Return everything that changes in training. Random streams need no state, since they depend on the step number."""
        slots = {f"slot{i}": slot for i, slot in enumerate(self.slots)}
        counts = {"status": self.status, "last_step": self.last_step, "step_count": torch.tensor(self.step_count)}
        return {"weights": self.weights, **slots, **counts}

    def restore(self, state: dict[str, Tensor]) -> None:
        for name, value in self.state().items():
            value.copy_(state[name])
        self.step_count = int(state["step_count"])

    def tensors(self) -> dict[str, Tensor]:
        """Return the trained parameters by name, each (K, ...)."""
        return {name: value.detach().contiguous() for name, value in zip(self.layout, self.parameters)}


def entries(module: nn.Module) -> tuple[ParameterEntry, ...]:
    """Return the entries of a row of `flatten`."""
    row, start = [], 0
    for name, value in module.named_parameters():
        initial, shape = getattr(value, "initial", None), tuple(value.shape[1:])
        row.append(ParameterEntry(name, getattr(initial, "role", ""), getattr(initial, "kind", "weight"), shape, start))
        start += math.prod(shape)
    return tuple(row)


def flatten(module: nn.Module, members: int) -> tuple[Tensor, list[str]]:
    """Move all parameters into one tensor (K, P) and leave views of it in the module."""
    named = dict(module.named_parameters())
    for name, value in named.items():
        if value.shape[:1] != (members,):
            raise ValueError(
                f"parameter {name} has shape {tuple(value.shape)}; its first axis must be the {members} members"
            )
    rows = torch.cat([value.detach().flatten(1) for value in named.values()], 1)  # (K, P)
    start = 0
    for value in named.values():
        size = value[0].numel()
        value.data = rows[:, start : start + size].view(value.shape)
        start += size
    return rows, list(named)
