"""Which components of a job are tried, and what becomes of cells whose component is refused.

A trial that is passed is remembered in the store under what it depends on: the component's code, files and options, what its kind reads
of the network around it, the code of the trial, and torch. A refusal is not remembered: it is found again in milliseconds, and whatever
caused it may have been mended outside of the component, such as a package that was missing.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch

from rankfall import components
from rankfall.design import Architecture, Component, Task, Training
from rankfall.disk import StoreError
from rankfall.errors import describe_error
from rankfall.filters import as_list
from rankfall.nets.network import Shape
from rankfall.run.config.rules import parts
from rankfall.run.guards.declared import Unproved
from rankfall.run.guards.elsewhere import other_process
from rankfall.run.guards.process import Altered, check_unaltered
from rankfall.run.guards.trial.candidate import Candidate, Drawn, Refused
from rankfall.run.guards.trial.kinds import KINDS, try_component
from rankfall.run.guards.trial.setting import MOST_SYMBOLS, Surroundings, longest
from rankfall.run.guards.trial.steps import try_steps
from rankfall.run.guards.trial.variants import (
    AS_USED,
    NOTHING,
    NUMBERLESS,
    VARIANTS,
    Outcome,
    compare,
    compare_bits,
    outcomes,
)
from rankfall.run.guards.unchanged import check_unchanged
from rankfall.run.jobs.cells import dataset_of, shape_of
from rankfall.run.keys.files import files_of
from rankfall.run.keys.fingerprint import Sources
from rankfall.run.plan.cell import digest
from rankfall.run.plan.cells import module_of
from rankfall.run.store.trials import Trials
from rankfall.train.data import steps_per_epoch

if TYPE_CHECKING:
    from rankfall.run.plan.cell import Cell
    from rankfall.run.store import Store

FAST = 2.0  # seconds of a trial: what takes longer, such as a large data set, is not tried in variants
SLOW = 0.1  # seconds a call from which on the one who wrote it is told


class Bench:
    """Tries each component once in a job, and none whose trial the store remembers."""

    def __init__(self, store: "Store", note: Callable[[str], None]) -> None:
        self.store, self.note = Trials(store.root), note
        self.sources = Sources()
        self.own = self.sources.fingerprint(["rankfall.run.guards.trial.steps", "rankfall.run.guards.trial.variants"])
        self.code: dict[tuple[str, str], str] = {}
        self.known: dict[str, str] = {}  # key -> the line that refuses it, or nothing
        self.passed: dict[str, dict[str, Any]] = {}

    def refusal(self, kind: str, component: Component, setting: Surroundings, drawn: Drawn = None) -> str:
        """Why a component cannot be used, in one line; nothing if it can. `drawn`: data that a task has drawn."""
        key = self.key(kind, component, setting)
        if key not in self.known:
            self.known[key] = "" if self.store.holds(key) else self.judge(key, kind, component, setting, drawn)
        return self.known[key]

    def key(self, kind: str, component: Component, setting: Surroundings) -> str:
        if (kind, component.name) not in self.code:
            self.code[kind, component.name] = self.sources.fingerprint([module_of(kind, component, self.sources)])
        read = {name: value for name, value in asdict(setting).items() if name in KINDS[kind].reads}
        code = self.code[kind, component.name], files_of(kind, component, kind)
        return digest("trial", self.own, str(torch.__version__), kind, component.name, component.options, code, read)

    def judge(self, key: str, kind: str, component: Component, setting: Surroundings, drawn: Drawn) -> str:
        try:
            with check_unaltered(lambda: f"{kind} {component.name!r}, when it is tried,"):
                candidate = try_component(kind, component, setting, drawn)
                try_steps(candidate, setting)
                if not candidate.is_ours:
                    self.compare_elsewhere(candidate, component, setting, drawn)
        except (Refused, Altered) as refused:  # the process was put back, or nothing more is computed in it
            return str(refused)
        if candidate.seconds > SLOW * candidate.calls and kind != "task":  # whose calls are not the first of thousands
            self.note(
                f"slow: {candidate.title}: {candidate.calls} calls on small inputs took {candidate.seconds:.1f} s"
            )
        self.passed[key] = {
            "kind": kind,
            "name": component.name,
            "calls": candidate.calls,
            "seconds": candidate.seconds,
        }
        return ""

    def compare_elsewhere(
        self, candidate: Candidate, component: Component, setting: Surroundings, drawn: Drawn
    ) -> None:
        """Raise `Refused` unless the component gives the same in another process."""
        fast = candidate.seconds < FAST
        here = {AS_USED: candidate.results} | (outcomes(candidate.kind, component, setting) if fast else {})

        def outcomes_elsewhere(after: str) -> dict[str, Outcome]:
            return other_process().outcomes(candidate.kind, component, setting, drawn, after)

        try:
            compare(candidate, here, outcomes_elsewhere(VARIANTS if fast else NOTHING))
            if fast and candidate.kind not in NUMBERLESS:
                compare_bits(candidate, here[AS_USED], lambda after: outcomes_elsewhere(after)[AS_USED])
        except (OSError, RuntimeError, ValueError) as error:
            self.note(
                f"{candidate.title} could not be tried in another process, so it was not: {describe_error(error)}"
            )

    def keep(self) -> None:
        """Remember what was passed. Whoever calls has made sure that the code was not edited meanwhile."""
        for key, about in self.passed.items():
            self.store.keep(key, about)
        self.passed.clear()


def find_refused_cells(cells: "Sequence[Cell]", store: "Store", note: Callable[[str], None]) -> dict[str, str]:
    """Cell key -> why one of its components cannot be used."""
    if not cells:
        return {}
    bench = Bench(store, note)
    reasons: dict[tuple[Task, Architecture, Training], str] = {}
    drawn: dict[Task, Drawn] = {}

    def reason(cell: "Cell") -> str:
        if cell.task not in drawn:
            try:
                drawn[cell.task] = dataset_of(cell, store), cell.data_seed
            except (StoreError, Unproved):
                raise
            except (
                Exception
            ):  # the trial says why; or the task has no data for this one seed, and its training will say so
                drawn[cell.task] = None
        known = drawn[cell.task]
        found = bench.refusal("task", cell.task.task, Surroundings(), known)
        if found or known is None:
            return found
        setting = setting_of(cell, shape_of(cell, known[0]), len(known[0].train.inputs))
        used = parts(cell.task, cell.architecture, cell.training)
        return next(filter(None, (bench.refusal(kind, part, setting) for kind, part in used)), "")

    for cell in cells:
        designs = cell.task, cell.architecture, cell.training
        if designs not in reasons:
            reasons[designs] = reason(cell)
    # Half an edit may well be refused, and what passed must be what the key names.
    check_unchanged(*(cell.code for cell in cells))
    bench.keep()
    found = {cell.key: reasons[cell.task, cell.architecture, cell.training] for cell in cells}
    refused = {key: line for key, line in found.items() if line}
    for line, count in Counter(refused.values()).items():
        note(f"refused, so {count} cell{'s' * (count != 1)} failed: {line}")
    return refused


def setting_of(cell: "Cell", shape: Shape, samples: int) -> Surroundings:
    """The network of a cell, with sequences and vocabularies cut where they cost much; `samples` are in an epoch."""
    a = cell.architecture
    sentinels = components.describe("sentinels", a.sentinels.name)
    heads, mlp_width = a.heads or 1, a.mlp_width or 4 * a.width  # null where nothing reads them
    count = sentinels.facts.get("COUNT") if sentinels else 0
    return Surroundings(
        width=a.width,
        heads=heads,
        head_width=a.head_width or a.width // heads,
        mlp_width=mlp_width,
        tokens=longest(shape.length, heads, a.width, mlp_width),
        sentinels=count if type(count) is int else 0,
        size_in=min(shape.size_in, MOST_SYMBOLS),
        size_out=min(shape.size_out, MOST_SYMBOLS),
        inputs=shape.inputs,
        masked=a.mask is not None and a.mask.name != "none",
        trained=cell.training.epochs > 0,
        placement=a.norm_placement,
        mlp=a.mlp.name != "none",
        epochs=cell.training.epochs,
        steps=cell.training.epochs * steps_per_epoch(samples, cell.training.batch),
    )


def refuse_parts(measure: Component, code: Mapping[str, str], store: "Store", note: Callable[[str], None]) -> None:
    """Raise if a measure that builds networks of its own is told to use a component that cannot be used. Its fact PARTS says
    which options name components of which kind; `code` is the measure's.
    """
    bench = Bench(store, note)
    kinds = components.facts_of("measure", measure.name).get("PARTS", {})
    named = {
        kind: [Component.of(one) for one in as_list(measure.options.get(option, []))] for option, kind in kinds.items()
    }
    setting = Surroundings(trained=False, masked=any(part.name != "none" for part in named.get("mask", [])))
    lines = [bench.refusal(kind, part, setting) for kind, some in named.items() for part in some]
    check_unchanged(code)
    bench.keep()
    for line in filter(None, lines):
        raise Refused(line)
