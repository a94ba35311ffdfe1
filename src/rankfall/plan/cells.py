"""From the grid's points to cells: keys, groups and shards; two points that mean the same cell are an error."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankfall import components
from rankfall.plan import shard
from rankfall.plan.cell import Cell, digest, spec_content, training_content
from rankfall.plan.config import Architecture, Compute, Task, Training
from rankfall.plan.cost import Cost
from rankfall.plan.fingerprint import SHORT, Sources
from rankfall.plan.grid import Point
from rankfall.plan.history import History, read_history
from rankfall.plan.problems import problem
from rankfall.plan.rules import parts
from rankfall.plan.values import Component

# The arithmetic of training and of drawing data; not the jobs around them, so that an edit there costs nothing.
TRAIN_ROOTS = ("rankfall.train.loop",)
DATA_ROOTS = ("rankfall.tasks._dataset",)


@dataclass(frozen=True)
class Shared:
    """What all seeds of a (task, architecture, training) have in common."""

    content: dict[str, Any]  # the spec but for the seed: task, architecture, training
    digest: str
    group: str
    cost: Cost
    code: Mapping[str, str]
    fingerprint: str
    data_code: Mapping[str, str]
    data_fingerprint: str
    order: tuple[Any, ...]


@dataclass(frozen=True)
class Draft:
    """A cell but for its shard, which needs to know what the others cost."""

    point: Point
    shared: Shared
    spec: str


class Drafts:
    """Makes drafts; whatever is the same for many cells is worked out once."""

    def __init__(self, sources: Sources, history: History) -> None:
        self.sources, self.history = sources, history
        self.shared: dict[
            tuple[int, int, int], tuple[Point, Shared]
        ] = {}  # by identity; the point keeps its parts alive
        self.modules: dict[tuple[str, str], str] = {}
        self.taken: dict[str, Point] = {}

    def draft(self, point: Point) -> Draft:
        ident = (id(point.task), id(point.architecture), id(point.training))
        if ident not in self.shared:
            self.shared[ident] = (point, self.share(point.task, point.architecture, point.training))
        shared = self.shared[ident][1]
        spec = digest("spec", shared.digest, point.seed)
        if spec in self.taken:
            other = self.taken[spec]
            what = f"{told(point)} is already made by {other.origin} as {told(other)}"
            raise problem(point.origin, what, hint="take it out of one of them, or exclude it")
        self.taken[spec] = point
        return Draft(point, shared, spec)

    def share(self, task: Task, architecture: Architecture, training: Training) -> Shared:
        content = spec_content(task, architecture, training)
        spec = digest(content)
        stacked = training_content(training, stacked=True)
        data_roots = (*DATA_ROOTS, self.module("task", task.task))
        used = (self.module(kind, part) for kind, part in parts(task, architecture, training))
        roots = frozenset((*TRAIN_ROOTS, *data_roots, *used))
        files = named_files(task.task.options, self.facts("task", task.task))
        data_fingerprint = self.sources.fingerprint(data_roots)
        group = digest("group", content["task"], content["architecture"], stacked)
        return Shared(
            content=content,
            digest=spec,
            group=group,
            cost=self.history.of(group, task, architecture, training),
            code=self.sources.code_files(roots) | files,
            fingerprint=self.sources.fingerprint(roots),
            data_code=self.sources.code_files(data_roots) | files,
            data_fingerprint=digest(data_fingerprint, files) if files else data_fingerprint,
            order=(task.name, architecture.name, training.name, architecture.depth, spec),
        )

    def facts(self, kind: str, component: Component) -> Mapping[str, Any]:
        found = components.describe(kind, component.name)
        return found.facts if found else {}

    def module(self, kind: str, component: Component) -> str:
        if (kind, component.name) not in self.modules:
            self.modules[kind, component.name] = module_of(kind, component)
        return self.modules[kind, component.name]


def make_cells(points: Iterable[Point], compute: Compute, sources: Sources) -> list[Cell]:
    """The cells in canonical order: by labels, depth, spec, seed, whatever the order of the configuration."""
    maker = Drafts(sources, read_history(compute.costs))
    drafts = sorted(map(maker.draft, points), key=lambda draft: (*draft.shared.order, draft.point.seed))
    seconds: dict[str, float] = {}
    for draft in drafts:
        name = draft.point.task.name
        seconds[name] = seconds.get(name, 0.0) + draft.shared.cost.seconds
    bits = {name: shard.bits(total, compute.shard_minutes) for name, total in seconds.items()}
    return [_finished(draft, bits[draft.point.task.name]) for draft in drafts]


def _finished(draft: Draft, bits: int) -> Cell:
    point, shared = draft.point, draft.shared
    data_key = digest("data", shared.content["task"], point.seed, shared.data_fingerprint)
    return Cell(
        task=point.task,
        architecture=point.architecture,
        training=point.training,
        seed=point.seed,
        key=digest(draft.spec, shared.fingerprint, data_key),
        spec=draft.spec,
        data_key=data_key,
        group=shared.group,
        shard=shard.shard(shard.pack(shared.group, point.seed), bits),
        code=shared.code,
        data_code=shared.data_code,
        cost=shared.cost,
    )


def named_files(options: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, str]:
    """Path -> digest of the files that options name: what is in them is part of what is made of them. A bare word is never a file
    of the user's; the component's READS says which words stand for a module whose source text is read: it may differ between
    versions of Python."""
    words = facts.get("READS", {})
    modules = sorted({words[value] for value in options.values() if isinstance(value, str) and value in words})
    specs = {module: components.find_module(module) for module in modules}
    sources = {module: Path(spec.origin) for module, spec in specs.items() if spec and spec.origin}
    paths = {value for value in options.values() if isinstance(value, str) and re.search(r"[./\\]", value)}
    found = {path: Path(path).expanduser() for path in sorted(paths)} | sources
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()[:SHORT] for name, path in found.items() if path.is_file()
    }


def module_of(kind: str, component: Component) -> str:
    """The module of a component that is known to exist."""
    location = components.locate(kind, component.name)
    assert location is not None, f"{kind} {component.name} was left open"
    return location.module


def told(point: Point) -> str:
    """A cell in words."""
    a = point.architecture
    return f"{point.task.name} / {a.name} / {point.training.name}, depth {a.depth}, seed {point.seed}"
