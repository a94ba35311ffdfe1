"""The fused engine: the same step as `Members.step` without autograd, for members whose network and training it serves.

members = recipe.initial(architecture, shape, seeds, trainings, torch.device("cpu"))
members.engine = Fused(members, architecture, trainings[0])
members.step(objective, batch)
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rankfall.design import Architecture, Training
from rankfall.train.data import grouped
from rankfall.train.fused import cache, losses, shares
from rankfall.train.fused.form import (
    ADAMW,
    CLASSES,
    OF_ENDS,
    OF_LAYER,
    SGD,
    TABLE,
    VALUES,
    Form,
    Room,
    Scratch,
    padded,
    room_for,
    scratch_for,
)
from rankfall.train.fused.network import OPTIMIZERS, Described
from rankfall.train.fused.rows import used_rows
from rankfall.train.fused.step import step_members
from rankfall.train.members import RUNNING, Members
from rankfall.train.objectives._base import Graded, Objective, Samples
from rankfall.train.objectives.masked_tokens import corrupt, masked_tokens

EVALUATED = 32  # samples at once, at most: more leave the processor's cache
NO_KEYS = np.zeros((1, 2), np.uint64)
NO_ROWS = np.zeros((1, 0), np.uint8)
EVERYWHERE = np.zeros((1, 1, 1), np.int64)


@dataclass(frozen=True)
class Launch:
    """The kernels' arguments for one batch of all members, among them where what is found goes (K, FOUND)."""

    form: Form
    shared: tuple[Any, ...]
    found: np.ndarray


class Fused:
    name = "fused"

    def __init__(self, members: Members, architecture: Architecture, training: Training) -> None:
        prepare()
        network: Any = members.module
        self.described = Described(network, members.weights, architecture, training)
        self.layers, self.ends, self.sites = self.described.layers(), self.described.ends(), self.described.sites()
        self.at_once = padded(min(training.batch, EVALUATED))
        self.optimizer = OPTIMIZERS[training.optimizer.name], rates_of(members.optimizer)
        self.hides = hiding(training)
        self.forms: dict[tuple[int, ...], Form] = {}
        self.fixed: dict[int, Any] = {}
        self.rooms: dict[Form, list[tuple[Room, Scratch]]] = {}
        self.pace = 1.0  # seconds that a step of all members took last
        self.used, self.used_at = (
            NO_ROWS,
            -1,
        )  # rows of the table of symbols that steps change (`rows.py`), before this step

    def together(self, members: int) -> int:
        """Steps that `steps` should be given at once. Numbers do not depend on it."""
        return shares.steps_between(members, workers(members), self.pace)

    def steps(self, members: Members, objective: Objective, batches: Sequence[Samples]) -> list[Graded]:
        """One batch after another for every member, shared among as many threads as torch would use; a step of a network is computed by
        one of them alone, so that its numbers do not depend on their count."""
        threshold = int(members.dropout.threshold) if members.dropout else 0
        if self.used_at != members.step_count:
            self.used = self.used_by(members)
            members.grads.zero_()
        launches: list[Launch] = []
        for batch in batches:
            inputs, targets, asked = self.given(batch)
            form = self.form_of(batch, asked.shape[2] if self.hides else 0, threshold, learned=True)
            launches.append(self.arguments(members, form, inputs, targets, asked, members.step_count + len(launches)))
        began = time.perf_counter()
        running = self.compute(members, launches)
        self.pace = (time.perf_counter() - began) / len(launches)
        members.step_count += len(launches)
        self.used_at = members.step_count
        members.last_step += running.sum(0)
        return [
            graded(torch.from_numpy(one.found), one.form.loss, batch.constant) for one, batch in zip(launches, batches)
        ]

    def grade(self, members: Members, objective: Objective, batch: Samples) -> Graded:
        """As many samples at once as fill the room of a step, without dropout."""
        if self.hides:
            return objective(members.module, batch)
        total = torch.zeros(len(members), losses.FOUND, dtype=torch.float64)
        parts = zip(batch.inputs.split(self.at_once, 1), batch.targets.split(self.at_once, 1))
        for some in grouped(parts, self.together(len(members))):
            launches = []
            for inputs, targets in some:
                form = self.form_of(replace(batch, inputs=inputs, targets=targets), 0, 0, learned=False)
                launches.append(self.arguments(members, form, inputs, targets, EVERYWHERE, members.step_count))
            self.compute(members, launches)
            for one in launches:
                found = torch.from_numpy(one.found)
                asked = found[:, losses.ASKED]
                found[:, losses.LOSS] = (found[:, losses.LOSS] * asked).masked_fill(asked == 0, 0.0)
                total += found
        total[:, losses.LOSS] /= total[:, losses.ASKED]
        return graded(total, form.loss, batch.constant)

    def used_by(self, members: Members) -> np.ndarray:
        """Of the rows of the table of symbols those that the steps so far have changed, or that change without a gradient."""
        pulled = torch.zeros_like(members.lr) if members.decay is None or self.optimizer[0] == ADAMW else members.decay
        still = (
            self.optimizer[0] == SGD or np.float32(self.optimizer[1][2]) > 0
        )  # 0 / (0 + eps) is no number without eps
        moved = (pulled.squeeze(1) != 0) | (not still)
        table = int(self.ends[TABLE]), self.described.architecture.width, self.described.symbols
        return used_rows(members.slots, *table, moved)

    def arguments(
        self, members: Members, form: Form, inputs: Tensor, targets: Tensor, asked: np.ndarray, step: int
    ) -> Launch:
        dropout = members.dropout
        decay = torch.zeros_like(members.lr) if members.decay is None else members.decay
        clip = torch.full_like(members.lr, torch.inf) if members.clip is None else members.clip
        slots = [slot.numpy() for slot in members.slots]
        found = np.zeros((len(members), losses.FOUND))
        shared = (
            *(members.weights.detach().numpy(), members.grads.numpy(), (slots[0], slots[-1])),
            *(self.layers, self.ends, form, as_both(inputs), (*as_both(targets), asked), self.fixed[form.tokens]),
            *(np.array(dropout.keys) if dropout else NO_KEYS, self.sites, step),
            (*(column.squeeze(1).numpy() for column in (members.lr_now, decay, clip)),),
            *(self.optimizer, members.fate.numpy(), self.used, found),
        )
        return Launch(form, shared, found)

    def compute(self, members: Members, launches: Sequence[Launch]) -> Tensor:
        """Fills in what is found, and says which members were running after each of the steps (steps, K)."""
        count, fate = len(members), members.fate.numpy()
        running = np.zeros((len(launches), count), bool)
        given = shares.shares(count, len(launches), workers(count))
        for form in {one.form for one in launches}:
            rooms = self.rooms.setdefault(form, [])
            while len(rooms) < len(given):
                rooms.append((room_for(form), scratch_for(form)))

        def compute(first: int, last: int, step: int, thread: int) -> None:
            one = launches[step]
            step_members(first, last, *one.shared, *self.rooms[one.form][thread])
            running[step, first:last] = fate[first:last] == RUNNING

        shares.compute_shares(given, len(launches), compute)
        return torch.from_numpy(running)

    def given(self, batch: Samples) -> tuple[Tensor, Tensor, np.ndarray]:
        """What the network sees, what is wanted of it, and where, if not everywhere."""
        if not self.hides:
            return batch.inputs, batch.targets, EVERYWHERE
        seen, places, wanted = corrupt(batch, **self.hides)
        return seen, wanted, places.numpy()

    def form_of(self, batch: Samples, asked: int, threshold: int, learned: bool) -> Form:
        sequences, tokens = batch.inputs.shape[1:3]
        size_in = batch.inputs.shape[3] if batch.inputs.dim() > 3 else 0
        ident = sequences, tokens, learned
        if ident not in self.forms:
            self.forms[ident] = self.described.form(
                sequences, tokens, size_in, asked, batch.constant, threshold, learned
            )
            self.fixed[tokens] = self.described.fixed(tokens)
        return self.forms[ident]


def workers(members: int) -> int:
    return max(1, min(torch.get_num_threads(), members))


def prepare() -> None:
    """Has the kernels compiled, once for a process."""
    cache.ready(step_members, of_its_types)


def of_its_types() -> tuple[Any, ...]:
    """Arguments of the types that `Fused.arguments` gives, for no member at all."""
    form = Form(**{name: kind(1) for name, kind in Form.__annotations__.items()})
    row, index, f = np.zeros((0, 1), np.float32), np.zeros((1, 1, 1), np.int64), np.zeros(0, np.float32)
    places = np.zeros((1, 1), np.float32), np.zeros((1, 1, 1), np.float32), index, np.zeros((1, 1, 1), np.float32)
    both = index, np.zeros((1, 1, 1, 1), np.float32)
    described = np.zeros((1, OF_LAYER), np.int64), np.zeros(OF_ENDS, np.int64), form, both, (*both, index), places
    given = NO_KEYS, np.zeros((2, 3), np.uint64), 0, (f, f, f), (0, (0.0, 0.0, 0.0))
    last = np.zeros(0, np.int64), NO_ROWS, np.zeros((0, losses.FOUND)), room_for(form), scratch_for(form)
    return 0, 0, row, row, (row, row), *described, *given, *last


def hiding(training: Training) -> dict[str, float]:
    """How tokens are hidden, as `corrupt` is told it; empty where none are."""
    if training.objective.name != masked_tokens.__name__:
        return {}
    told: dict[str, Any] = (masked_tokens.__kwdefaults__ or {}) | dict(training.objective.options)
    return {name: told[name] for name in ("rate", "hidden", "random")}


def rates_of(optimizer: Any) -> tuple[float, float, float]:
    if hasattr(optimizer, "beta1"):
        return float(optimizer.beta1), float(optimizer.beta2), float(optimizer.eps)
    return float(optimizer.momentum), 0.0, 0.0


def as_both(values: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """As integers (K, B, T) and as numbers (K, B, T, C), of which the other is empty."""
    if values.is_floating_point():
        return np.zeros((1, 1, 1), np.int64), values.contiguous().numpy()
    return values.contiguous().numpy(), np.zeros((1, 1, 1, 1), np.float32)


def graded(found: Tensor, of: int, constant: int | None) -> Graded:
    """From what the kernels found (K, FOUND)."""
    count = lambda column: found[:, column].nan_to_num().long()  # noqa: E731
    sums: dict[str, Tensor] = {}
    asked_of: dict[str, Tensor] = {}
    loss, asked = found[:, losses.LOSS].float(), count(losses.ASKED)
    if of != VALUES:
        sums["accuracy"] = count(losses.RIGHT)
    if of == CLASSES and constant is not None:
        for name, right, part in (
            ("constant", losses.RIGHT_CONSTANT, losses.ASKED_CONSTANT),
            ("informative", losses.RIGHT_INFORMATIVE, losses.ASKED_INFORMATIVE),
        ):
            sums[f"accuracy_{name}"], asked_of[f"accuracy_{name}"] = count(right), count(part)
    return Graded(loss, asked, sums, asked_of)
