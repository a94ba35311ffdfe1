"""A cell, and the hashes that identify it:

- `spec`: task, architecture, training and seed, without labels, with all defaults, without unread fields;
- `key`: spec, fingerprint of the code that computes the cell, and data key;
- `data_key`: task, seed if the data depend on it, and fingerprint of the code that generates the data;
- `group`, which cells of one stack must share: the spec without the seed and without the hyperparameters that members may differ in.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from rankfall.design import Architecture, Component, Task, Training, canonical, names
from rankfall.run.plan.cost import Cost

LENGTH = 24  # hex digits of a key: 96 bits, so that no two cells share a key by chance
PER_MEMBER = frozenset({"lr", "weight_decay", "clip", "schedule", "stop_loss"})
UNTRAINED = frozenset({"objective", "epochs", "dtype"})  # fields of a training without epochs that count


@dataclass(frozen=True, slots=True)
class Cell:
    """One network, trained or at initialisation: the unit of caching."""

    task: Task
    architecture: Architecture
    training: Training
    seed: int
    key: str
    spec: str
    data_key: str
    data_seed: int | None  # None if the data do not depend on the seed, so that all seeds share them
    group: str
    shard: str
    engine: str  # of its training steps, see run/plan/engines.py
    code: Mapping[str, str] = field(repr=False, compare=False)  # source file -> digest, of all the cell's code
    data_code: Mapping[str, str] = field(repr=False, compare=False)  # the same for the cell's data
    cost: Cost = field(repr=False, compare=False)  # measured earlier, or estimated

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def labels(self) -> tuple[str, str, str]:
        """The names of task, architecture and training in the configuration."""
        return self.task.name, self.architecture.name, self.training.name

    @property
    def title(self) -> str:
        """The name of the cell in errors."""
        return f"{' / '.join(self.labels)}, depth {self.architecture.depth}, seed {self.seed}"

    @property
    def content(self) -> dict[str, Any]:
        """The spec without the seed, as plain data."""
        return spec_content(self.task, self.architecture, self.training)


class Alike(NamedTuple):
    """Adjacent cells of a list that differ only in their seeds, so that most of the plan is computed once for all of them."""

    cells: list[Cell]

    @property
    def task(self) -> Task:
        return self.cells[0].task

    @property
    def architecture(self) -> Architecture:
        return self.cells[0].architecture

    @property
    def training(self) -> Training:
        return self.cells[0].training

    @property
    def seeds(self) -> list[int]:
        return [cell.seed for cell in self.cells]

    def with_seeds(self, seeds: Collection[int]) -> "Alike":
        """Return the cells that have one of these seeds."""
        if len(seeds) == len(self.cells):
            return self
        accepted = set(seeds)
        return Alike([cell for cell in self.cells if cell.seed in accepted])


def alike(cells: Iterable[Cell]) -> Iterator[Alike]:
    """Group adjacent cells that differ only in their seeds, in the order of the cells."""
    parts = groupby(cells, lambda cell: (id(cell.task), id(cell.architecture), id(cell.training)))
    return (Alike(list(series)) for _, series in parts)


def digest(*parts: Any) -> str:
    """Return the hash of plain values."""
    return digest_of(canonical(parts))


def digest_of(text: str) -> str:
    """Return the hash of a text in the form that `canonical` writes."""
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def spec_content(task: Task, architecture: Architecture, training: Training) -> dict[str, Any]:
    """Return the specification without seed and labels, as plain data."""
    return {
        "task": _content(task.task),
        "architecture": {name: _content(getattr(architecture, name)) for name in names(Architecture)},
        "training": training_content(training),
    }


def training_content(training: Training, *, stacked: bool = False) -> dict[str, Any]:
    """Return the fields of a training as plain data; with `stacked`, only the fields that all members of a stack share."""
    omitted = PER_MEMBER if stacked else frozenset()
    fields = frozenset(names(Training)) if training.epochs else UNTRAINED
    return {name: _content(getattr(training, name)) for name in sorted(fields - omitted)}


def _content(value: Any) -> Any:
    return {"name": value.name, "options": value.options} if isinstance(value, Component) else value
