"""From the grid's points to cells: keys, groups and shards; two points that mean the same cell are an error."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankfall import components
from rankfall.code.files import files_of
from rankfall.code.fingerprint import Sources
from rankfall.config.match import Filter, matches
from rankfall.config.problems import problem
from rankfall.config.rules import check_precision, parts
from rankfall.config.types import Compute
from rankfall.design import Architecture, Component, Task, Training
from rankfall.plan import shard
from rankfall.plan.cell import Cell, digest, spec_content, training_content
from rankfall.plan.cost import Cost, cell_seconds
from rankfall.plan.engines import PLAIN, ROOTS, engine_of
from rankfall.plan.grid import Point
from rankfall.plan.history import read_history

# The arithmetic of training and of drawing data, without the jobs around them, so that an edit there makes nothing stale.
TRAIN_ROOTS = ("rankfall.train.recipe", "rankfall.train.fit")
DATA_ROOTS = ("rankfall.tasks._dataset",)
ALONE = 300.0  # seconds of a network, by the model: measured ones vary, and would move networks from job to job
Costs = tuple[Filter, float]  # the cells of a measure, and the seconds that it says it takes for one


@dataclass(frozen=True)
class Shared:
    """What all seeds of a (task, architecture, training) have in common."""

    content: dict[str, Any]  # the spec but for the seed: task, architecture, training
    digest: str
    group: str
    alone: bool  # whether a network is a pack of its own
    engine: str
    cost: Cost
    code: Mapping[str, str]
    fingerprint: str
    data_code: Mapping[str, str]
    data_fingerprint: str
    seeded: bool  # whether the data depend on the seed
    order: tuple[Any, ...]


@dataclass(frozen=True)
class Draft:
    """A cell without its shard, which depends on the cost of the others."""

    point: Point
    shared: Shared
    spec: str


class Drafts:
    """Makes drafts; what many cells have in common is computed once."""

    def __init__(self, sources: Sources, compute: Compute) -> None:
        self.sources, self.compute, self.history = sources, compute, read_history(compute.costs)
        self.shared: dict[tuple[Task, Architecture, Training], Shared] = {}
        self.modules: dict[tuple[str, str], str] = {}
        self.files: dict[tuple[str, Component], dict[str, str]] = {}
        self.codes: dict[tuple[frozenset[str], tuple[tuple[str, str], ...]], Mapping[str, str]] = {}
        self.taken: dict[str, Point] = {}

    def draft(self, point: Point) -> Draft | None:
        """None for a point that differs from another point of its entry in unread fields only, so that both are one cell."""
        designs = point.task, point.architecture, point.training
        shared = self.shared.get(designs)
        if shared is None:
            shared = self.shared[designs] = self.share(point)
        spec = digest("spec", shared.digest, point.seed)
        if spec in self.taken:
            other = self.taken[spec]
            if (told(point), point.origin) == (
                told(other),
                other.origin,
            ) and point.architecture is not other.architecture:
                return None
            what = f"{told(point)} is already made by {other.origin} as {told(other)}"
            raise problem(point.origin, what, hint="take it out of one of them, or exclude it")
        self.taken[spec] = point
        return Draft(point, shared, spec)

    def share(self, point: Point) -> Shared:
        task, architecture, training = point.task, point.architecture, point.training
        content = spec_content(task, architecture, training)
        spec = digest(content)
        stacked = training_content(training, stacked=True)
        data_roots = (*DATA_ROOTS, self.module("task", task.task))
        used = parts(task, architecture, training)
        check_precision(training, self.compute.device, f"{point.origin} ({training.name})")
        engine = engine_of(self.compute, task, architecture, training, self.sources)
        roots = frozenset(
            (*TRAIN_ROOTS, *ROOTS[engine], *data_roots, *(self.module(kind, part) for kind, part in used))
        )
        data_files = self.files_of("task", task.task, f"tasks.{task.name}")
        files: dict[str, str] = {}  # of the other parts: the cell's key holds its data's
        for kind, part in used:
            if kind != "task":
                files |= self.files_of(kind, part, f"{point.origin} ({architecture.name}, {training.name})")
        fingerprint, data_fingerprint = self.sources.fingerprint(roots), self.sources.fingerprint(data_roots)
        group = digest("group", content["task"], content["architecture"], stacked)
        return Shared(
            content=content,
            digest=spec,
            group=group,
            # One thread takes one network after another. What a stack spares is the time between steps, of long ones nothing.
            alone=engine != PLAIN
            and self.compute.threads == 1
            and cell_seconds(task, architecture, training, engine) >= ALONE,
            engine=engine,
            cost=self.history.of(group, task, architecture, training, engine),
            code=self.code_of(roots, data_files | files),
            fingerprint=digest(fingerprint, files) if files else fingerprint,
            data_code=self.code_of(frozenset(data_roots), data_files),
            data_fingerprint=digest(data_fingerprint, data_files) if data_files else data_fingerprint,
            seeded=bool(self.facts("task", task.task).get("SEEDED", True)),
            order=(task.name, architecture.name, training.name, architecture.depth, spec),
        )

    def code_of(self, roots: frozenset[str], files: Mapping[str, str]) -> Mapping[str, str]:
        """One object for all who have the same: thousands of them would take a gigabyte."""
        ident = roots, tuple(sorted(files.items()))
        if ident not in self.codes:
            self.codes[ident] = {**self.sources.code_files(roots), **files}
        return self.codes[ident]

    def files_of(self, kind: str, component: Component, path: str) -> dict[str, str]:
        if (kind, component) not in self.files:
            self.files[kind, component] = files_of(kind, component, path)
        return self.files[kind, component]

    def facts(self, kind: str, component: Component) -> Mapping[str, Any]:
        found = components.describe(kind, component.name)
        return found.facts if found else {}

    def module(self, kind: str, component: Component) -> str:
        if (kind, component.name) not in self.modules:
            self.modules[kind, component.name] = module_of(kind, component)
        return self.modules[kind, component.name]


def make_cells(points: Iterable[Point], compute: Compute, sources: Sources, costs: Sequence[Costs] = ()) -> list[Cell]:
    """The cells in canonical order: by labels, depth, spec, seed, whatever the order of the configuration. `costs` are of measures."""
    maker = Drafts(sources, compute)
    made = [draft for draft in map(maker.draft, points) if draft is not None]
    drafts = sorted(made, key=lambda draft: (*draft.shared.order, draft.point.seed))
    homes = _shards(drafts, compute, costs)
    return [_finished(draft, home) for draft, home in zip(drafts, homes)]


def _shards(drafts: list[Draft], compute: Compute, costs: Sequence[Costs]) -> list[str]:
    """The shard of each cell. A shard is trained in one job and measured in one for each measure, so its size follows from what takes
    longest.
    """
    known: dict[tuple[str, int], shard.Pack] = {}
    seconds: dict[str, dict[shard.Pack, float]] = {}  # by task
    places = []
    for draft in drafts:
        name, seed = draft.point.task.name, draft.point.seed
        ident = draft.spec if draft.shared.alone else draft.shared.group, seed // shard.SEEDS
        if ident not in known:
            known[ident] = shard.pack(ident[0], seed)
        pack, own = known[ident], seconds.setdefault(name, {})
        dearest = max([draft.shared.cost.seconds, *(seconds for of, seconds in costs if matches(draft.point, of))])
        own[pack] = own.get(pack, 0.0) + dearest
        places.append((name, pack))
    homes = {name: shard.shards(own, compute.shard_minutes) for name, own in seconds.items()}
    return [homes[name][pack] for name, pack in places]


def _finished(draft: Draft, home: str) -> Cell:
    point, shared = draft.point, draft.shared
    data_seed = point.seed if shared.seeded else None
    data_key = digest("data", shared.content["task"], data_seed, shared.data_fingerprint)
    return Cell(
        task=point.task,
        architecture=point.architecture,
        training=point.training,
        seed=point.seed,
        key=digest(draft.spec, shared.fingerprint, data_key),
        spec=draft.spec,
        data_key=data_key,
        data_seed=data_seed,
        group=shared.group,
        shard=home,
        engine=shared.engine,
        code=shared.code,
        data_code=shared.data_code,
        cost=shared.cost,
    )


def module_of(kind: str, component: Component) -> str:
    """The module of a component that is known to exist."""
    location = components.locate(kind, component.name)
    assert location is not None, f"{kind} {component.name} was left open"
    return location.module


def told(point: Point) -> str:
    """A cell in words."""
    a = point.architecture
    return f"{point.task.name} / {a.name} / {point.training.name}, depth {a.depth}, seed {point.seed}"
