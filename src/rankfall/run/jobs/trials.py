"""Trials of the components of a job before it trains, and the cells that are refused.

A component is tried once. The store keeps what passes under the digest of its code, files and options, the sizes that its kind reads of the
surrounding network, the code of the trial, and the version of torch. A refusal is not stored: it is repeated in milliseconds, and its cause
may lie outside of the component, such as a missing package.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch

from rankfall import components
from rankfall.design import Architecture, Component, Task, Training
from rankfall.disk import StoreError
from rankfall.filters import as_list
from rankfall.nets.network import Shape
from rankfall.run.config.rules import parts
from rankfall.run.guards.reads import Unproved
from rankfall.run.guards.unchanged import check_unchanged
from rankfall.run.jobs.cells import dataset_of, shape_of
from rankfall.run.keys.files import files_of
from rankfall.run.keys.fingerprint import Sources
from rankfall.run.plan.cell import digest
from rankfall.run.plan.cells import module_of
from rankfall.trial.candidate import Drawn, Refused
from rankfall.trial.kinds import KINDS, try_component
from rankfall.trial.setting import MOST_SYMBOLS, Surroundings, longest

if TYPE_CHECKING:
    from rankfall.run.plan.cell import Cell
    from rankfall.run.store import Store

SLOW = 0.1  # seconds per call above which the component is reported as slow


class Bench:
    """The trials of one job. Each component is tried once, and not at all if the store remembers its trial."""

    def __init__(self, store: "Store", note: Callable[[str], None]) -> None:
        self.store, self.note = store, note
        self.sources = Sources()
        self.own = self.sources.fingerprint(["rankfall.trial.kinds"])
        self.code: dict[tuple[str, str], str] = {}
        self.known: dict[str, str] = {}  # key -> the error that refuses it, or nothing
        self.passed: dict[str, dict[str, Any]] = {}

    def refusal(self, kind: str, component: Component, setting: Surroundings, drawn: Drawn = None) -> str:
        """Return why a component cannot be used, or an empty string. `drawn` holds data that a task has drawn."""
        key = self.key(kind, component, setting)
        if key not in self.known:
            self.known[key] = "" if self.store.has_passed(key) else self.judge(key, kind, component, setting, drawn)
        return self.known[key]

    def key(self, kind: str, component: Component, setting: Surroundings) -> str:
        if (kind, component.name) not in self.code:
            self.code[kind, component.name] = self.sources.fingerprint([module_of(kind, component)])
        read = {name: value for name, value in asdict(setting).items() if name in KINDS[kind].reads}
        code = self.code[kind, component.name], files_of(kind, component, kind)
        return digest("trial", self.own, str(torch.__version__), kind, component.name, component.options, code, read)

    def judge(self, key: str, kind: str, component: Component, setting: Surroundings, drawn: Drawn) -> str:
        try:
            candidate = try_component(kind, component, setting, drawn)
        except Refused as refused:
            return str(refused)
        if candidate.seconds > SLOW * candidate.calls and kind != "task":  # a task is called only a few times
            took = f"{candidate.calls} calls on small inputs took {candidate.seconds:.1f} s"
            self.note(f"slow: {candidate.title}: {took}")
        self.passed[key] = {"kind": kind, "name": component.name}
        return ""

    def keep(self) -> None:
        """Store the components that passed. The caller has checked that their code was not edited meanwhile."""
        for key, about in self.passed.items():
            self.store.keep_trial(key, about)
        self.passed.clear()


def find_refused_cells(cells: "Sequence[Cell]", store: "Store", note: Callable[[str], None]) -> dict[str, str]:
    """Return, by cell key, why one of the cell's components cannot be used."""
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
            except Exception:  # the trial reports why; or only this seed has no data, which its training reports
                drawn[cell.task] = None
        known = drawn[cell.task]
        found = bench.refusal("task", cell.task.task, Surroundings(), known)
        if found or known is None:
            return found
        setting = setting_of(cell, shape_of(cell, known[0]))
        used = parts(cell.task, cell.architecture, cell.training)
        return next(filter(None, (bench.refusal(kind, part, setting) for kind, part in used)), "")

    for cell in cells:
        designs = cell.task, cell.architecture, cell.training
        if designs not in reasons:
            reasons[designs] = reason(cell)
    # An edit in progress may well be refused, and what passed must be what the key names.
    check_unchanged(*(cell.code for cell in cells))
    bench.keep()
    found = {cell.key: reasons[cell.task, cell.architecture, cell.training] for cell in cells}
    refused = {key: line for key, line in found.items() if line}
    for line, count in Counter(refused.values()).items():
        note(f"refused, so {count} cell{'s' * (count != 1)} failed: {line}")
    return refused


def setting_of(cell: "Cell", shape: Shape) -> Surroundings:
    """Return the sizes of a cell's network, with long sequences and large vocabularies reduced to save time."""
    a = cell.architecture
    sentinels = components.describe("sentinels", a.sentinels.name)
    heads, mlp_width = a.heads or 1, a.mlp_width or 4 * a.width  # null where no component reads them
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
    )


def refuse_parts(measure: Component, code: Mapping[str, str], store: "Store", note: Callable[[str], None]) -> None:
    """Raise if a measure that builds its own networks is configured with a component that cannot be used. Its fact PARTS maps options to
    the kinds of component that they name. `code` is the measure's code."""
    bench = Bench(store, note)
    kinds = components.facts_of("measure", measure.name).get("PARTS", {})
    named = {
        kind: [Component.parse(one) for one in as_list(measure.options.get(option, []))]
        for option, kind in kinds.items()
    }
    setting = Surroundings(trained=False, masked=any(part.name != "none" for part in named.get("mask", [])))
    lines = [bench.refusal(kind, part, setting) for kind, some in named.items() for part in some]
    check_unchanged(code)
    bench.keep()
    for line in filter(None, lines):
        raise Refused(line)
