"""Make cells from the grid's combinations, with keys, groups and shards. Two combinations that describe the same cell are an error.

Everything that does not depend on the seed is computed once per combination (`Shared`). A cell costs only two hashes of short texts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from rankfall import components
from rankfall.design import Component, canonical
from rankfall.run.config.match import Filter, select_seeds
from rankfall.run.config.problems import problem
from rankfall.run.config.rules import check_precision
from rankfall.run.config.types import Compute
from rankfall.run.keys import files_of
from rankfall.run.plan import shard
from rankfall.run.plan.cell import Cell, digest, digest_of, spec_content, training_content
from rankfall.run.plan.cost import Cost, cell_seconds
from rankfall.run.plan.engines import PLAIN, ROOTS, engine_of
from rankfall.run.plan.grid import Series, drop_seeds
from rankfall.run.plan.history import read_history
from rankfall.sources.fingerprint import Sources

# Roots of the code that trains and that draws data. They contain no jobs, so that an edit of a job makes nothing stale.
TRAIN_ROOTS = ("rankfall.train.recipe", "rankfall.train.loop")
DATA_ROOTS = ("rankfall.tasks._dataset",)
# Modelled seconds from which a network is a pack by itself. Measured seconds vary, and would move networks from job to job.
ALONE = 300.0
Costs = tuple[Filter, float]  # the cells of a measure, and the seconds per cell that it declares


@dataclass(frozen=True)
class Shared:
    """The common parts of all seeds of a (task, architecture, training)."""

    content: dict[str, Any]  # the spec without the seed: task, architecture, training
    digest: str
    group: str
    alone: bool  # whether each network is a pack by itself
    engine: str
    cost: Cost
    code: Mapping[str, str]
    fingerprint: str
    data_code: Mapping[str, str]
    data_fingerprint: str
    seeded: bool  # whether the data depend on the seed
    data_keys: dict[int | None, str]  # seed -> key of its data; a cache of all combinations with the same data
    order: tuple[Any, ...]  # sort key of the combination


@dataclass(frozen=True)
class Draft:
    """Cells of a combination, still without keys and shards: shards depend on the cost of other cells."""

    series: Series
    shared: Shared


class Drafts:
    """A factory of drafts, which computes common parts once."""

    def __init__(self, sources: Sources, compute: Compute) -> None:
        self.sources, self.compute, self.history = sources, compute, read_history(compute.costs)
        self.files: dict[tuple[str, Component], dict[str, str]] = {}
        self.codes: dict[tuple[frozenset[str], tuple[tuple[str, str], ...]], Mapping[str, str]] = {}
        self.data_keys: dict[tuple[str, str], dict[int | None, str]] = {}  # (task's content, code) -> keys
        self.taken: dict[str, list[Series]] = {}  # digest of the spec without the seed -> earlier series

    def draft(self, series: Series) -> Draft:
        """Return the draft of a series without the cells that equal earlier cells of their entry except in unread fields."""
        shared = self.share(series)
        same = self.taken.setdefault(shared.digest, [])
        for other in same:
            both = set(series.seeds) & set(other.seeds)
            if not both:
                continue
            seed = next(seed for seed in series.seeds if seed in both)
            first, second = describe_cell(other, seed), describe_cell(series, seed)
            distinct = (first, other.origin) != (second, series.origin)
            if distinct or series.architecture is other.architecture:
                fault = f"{second} is already made by {other.origin} as {first}"
                raise problem(series.origin, fault, hint="take it out of one of them, or exclude it")
            series = drop_seeds(series, both)
        same.append(series)
        return Draft(series, shared)

    def share(self, series: Series) -> Shared:
        """Return the common parts of all seeds of a series."""
        task, architecture, training = series.task, series.architecture, series.training
        content = spec_content(task, architecture, training)
        spec = digest(content)
        stacked = training_content(training, stacked=True)
        data_roots = (*DATA_ROOTS, components.module_of("task", task.task))
        used = components.parts_of(task, architecture, training)
        check_precision(training, self.compute.device, f"{series.origin} ({training.name})")
        engine = engine_of(self.compute, task, architecture, training)
        roots = frozenset(
            (*TRAIN_ROOTS, *ROOTS[engine], *data_roots, *(components.module_of(kind, part) for kind, part in used))
        )
        data_files = self.files_of("task", task.task, f"tasks.{task.name}")
        files: dict[str, str] = {}  # without the task's files, which are in the data key, and so in the cell's key
        for kind, part in used:
            if kind != "task":
                files |= self.files_of(kind, part, f"{series.origin} ({architecture.name}, {training.name})")
        fingerprint, data_fingerprint = self.sources.fingerprint(roots), self.sources.fingerprint(data_roots)
        data_fingerprint = digest(data_fingerprint, data_files) if data_files else data_fingerprint
        group = digest("group", content["task"], content["architecture"], stacked)
        return Shared(
            content=content,
            digest=spec,
            group=group,
            # One thread steps one network after another. A stack saves only the time between steps, which is small if steps are long.
            alone=engine != PLAIN
            and self.compute.threads == 1
            and cell_seconds(task, architecture, training, engine) >= ALONE,
            engine=engine,
            cost=self.history.cost_of(group, task, architecture, training, engine),
            code=self.code_of(roots, data_files | files),
            fingerprint=digest(fingerprint, files) if files else fingerprint,
            data_code=self.code_of(frozenset(data_roots), data_files),
            data_fingerprint=data_fingerprint,
            data_keys=self.data_keys.setdefault((canonical(content["task"]), data_fingerprint), {}),
            seeded=bool(components.facts_of("task", task.task.name).get("SEEDED", True)),
            order=(task.name, architecture.name, training.name, architecture.depth, spec),
        )

    def code_of(self, roots: frozenset[str], files: Mapping[str, str]) -> Mapping[str, str]:
        """Return the digests of code and files. Equal mappings are one object, since thousands of copies would take a gigabyte."""
        ident = roots, tuple(sorted(files.items()))
        if ident not in self.codes:
            self.codes[ident] = {**self.sources.code_files(roots), **files}
        return self.codes[ident]

    def files_of(self, kind: str, component: Component, path: str) -> dict[str, str]:
        """Return name -> digest of the files that a component reads, computed once."""
        if (kind, component) not in self.files:
            self.files[kind, component] = files_of(kind, component, path)
        return self.files[kind, component]


def make_cells(series: Iterable[Series], compute: Compute, sources: Sources, costs: Sequence[Costs] = ()) -> list[Cell]:
    """Return the cells ordered by labels, depth, spec and seed, whatever the order of the configuration. `costs` are of measures."""
    drafts = in_order(map(Drafts(sources, compute).draft, series))
    return [
        cell
        for draft, places in zip(drafts, _shards(drafts, compute, costs))
        for home, seeds in places
        for cell in finish(draft, seeds, home)
    ]


def in_order(drafts: Iterable[Draft]) -> list[Draft]:
    """Sort drafts by labels, depth and spec, then by seed. Drafts that differ only in their seeds are split, so that all seeds are in
    order.
    """
    by_order: dict[tuple[Any, ...], list[Draft]] = {}
    for draft in drafts:
        by_order.setdefault(draft.shared.order, []).append(draft)
    ordered = []
    for _, same in sorted(by_order.items(), key=itemgetter(0)):
        seeded = sorted((seed, number) for number, draft in enumerate(same) for seed in draft.series.seeds)
        for number, pairs in groupby(seeded, itemgetter(1)):
            series = same[number].series._replace(seeds=[seed for seed, _ in pairs])
            ordered.append(Draft(series, same[number].shared))
    return ordered


def _shards(drafts: list[Draft], compute: Compute, costs: Sequence[Costs]) -> list[list[tuple[str, list[int]]]]:
    """Return the (shard, seeds) of each draft.

    A shard is trained in one job and measured in one job per measure, so its size depends on the longest of these jobs."""
    seconds: dict[str, dict[int, float]] = {}  # task -> place of a pack -> seconds
    packed = []
    for draft in drafts:
        slowest = _slowest(draft, costs)
        pack_seconds = seconds.setdefault(draft.series.task.name, {})
        packs = list(_packs(draft))
        for pack, seeds in packs:
            for seed in seeds:
                pack_seconds[pack] = pack_seconds.get(pack, 0.0) + slowest[seed]
        packed.append((draft.series.task.name, packs))
    homes = {
        name: shard.shards(pack_seconds, compute.shard_minutes * compute.workers)
        for name, pack_seconds in seconds.items()
    }
    return [[(homes[name][pack], seeds) for pack, seeds in packs] for name, packs in packed]


def _slowest(draft: Draft, costs: Sequence[Costs]) -> dict[int, float]:
    """Return seed -> seconds of training or of the slowest measure, whichever is longer."""
    slowest = dict.fromkeys(draft.series.seeds, draft.shared.cost.seconds)
    for accepted, seconds in costs:
        if seconds > draft.shared.cost.seconds:
            for seed in select_seeds(draft.series, accepted):
                slowest[seed] = max(slowest[seed], seconds)
    return slowest


def _packs(draft: Draft) -> Iterator[tuple[int, list[int]]]:
    """Yield (place, seeds) of the packs of a draft's sorted seeds."""
    shared = draft.shared
    if shared.alone:
        for seed in draft.series.seeds:
            yield shard.place_of_pack(spec_of(shared, seed), seed), [seed]
        return
    for block, seeds in groupby(draft.series.seeds, lambda seed: seed // shard.SEEDS):
        yield shard.place_of_pack(shared.group, block * shard.SEEDS), list(seeds)


def spec_of(shared: Shared, seed: int) -> str:
    """Return the spec of a cell."""
    return digest_of(f'["spec","{shared.digest}",{seed}]')


def finish(draft: Draft, seeds: Iterable[int], home: str) -> Iterator[Cell]:
    """Yield the cells of a draft in one shard."""
    series, shared = draft.series, draft.shared
    keys, end = shared.data_keys, f'","{shared.fingerprint}","'
    for seed in seeds:
        data_seed = seed if shared.seeded else None
        if data_seed not in keys:
            keys[data_seed] = digest("data", shared.content["task"], data_seed, shared.data_fingerprint)
        spec, data_key = spec_of(shared, seed), keys[data_seed]
        yield Cell(
            series.task,
            series.architecture,
            series.training,
            seed,
            digest_of(f'["{spec}{end}{data_key}"]'),
            spec,
            data_key,
            data_seed,
            shared.group,
            home,
            shared.engine,
            shared.code,
            shared.data_code,
            shared.cost,
        )


def describe_cell(series: Series, seed: int) -> str:
    """Describe a cell in words."""
    a = series.architecture
    return f"{series.task.name} / {a.name} / {series.training.name}, depth {a.depth}, seed {seed}"
