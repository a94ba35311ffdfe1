"""The step before training: components pass their checks, and the machine's numbers agree with autograd's.

Each check is done once. The store keeps what passes under the digest of everything that the check depends on: the code, files and options
of a component with the sizes that its kind reads of the surrounding network, or the code of a cell's step with its processor; and the code
of the check and the version of torch. A refusal is not stored: it is repeated in milliseconds, and its cause may lie outside of the
component, such as a missing package.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import torch

from rankfall import components
from rankfall.design import Architecture, Component, Task, Training
from rankfall.disk import StoreError
from rankfall.errors import NoKernel, RankfallError, describe_error
from rankfall.filters import as_list
from rankfall.nets.network import Shape
from rankfall.run.config.rules import parts
from rankfall.run.guards import Unproved, check_job
from rankfall.run.jobs.cells import dataset_of, shape_of, stack_data
from rankfall.run.jobs.engine import machine_of
from rankfall.run.jobs.processor import processor
from rankfall.run.keys.files import files_of
from rankfall.run.keys.fingerprint import Sources
from rankfall.run.plan.cell import digest
from rankfall.run.plan.cells import module_of
from rankfall.run.plan.engines import MACHINE, MACHINE_GPU, MACHINES, check_installed
from rankfall.train.data import Data, steps_per_epoch
from rankfall.train.recipe import make_draw
from rankfall.trial.candidate import Drawn, Refused
from rankfall.trial.kinds import KINDS, try_component
from rankfall.trial.setting import MOST_SYMBOLS, Surroundings, longest

if TYPE_CHECKING:
    from rankfall.run.plan.cell import Cell
    from rankfall.run.store import Store
    from rankfall.train.objectives._base import Samples

SLOW = 0.1  # seconds per call above which the component is reported as slow
Note = Callable[[str], None]


def check_cells(cells: "Sequence[Cell]", store: "Store", device: torch.device, note: Note) -> dict[str, str]:
    """Return, by cell key, why a cell cannot be trained. Raise if an engine cannot run, has no device, or disagrees with autograd, which is
    no cell's fault."""
    check_engines(cells, device)
    refused = find_refused_cells(cells, store, note)
    firsts = {cell.group: cell for cell in reversed(cells) if cell.engine in MACHINES and cell.key not in refused}
    for cell in reversed(firsts.values()):
        check_agreement(cell, store, device, note)
    return refused


def check_engines(cells: "Sequence[Cell]", device: torch.device) -> None:
    """Raise if an engine of these cells cannot run here, and compile its kernels. Measuring jobs retrain lost cells and may run without a
    GPU."""
    engines = Counter(cell.engine for cell in cells)
    check_installed(engines)
    if MACHINE_GPU in engines and machine_of(MACHINE_GPU).device_type != device.type:
        raise RankfallError(
            f"compute.device: cuda, but there is no GPU here, and {engines[MACHINE_GPU]} networks that are trained on one are not in "
            "the store; run the job where there is one, or say `compute: {device: cpu}`, which makes other keys"
        )
    if MACHINE in engines:
        from rankfall.train.machine.engine import prepare

        prepare()


class ComponentChecks:
    """The checks of components in one job."""

    def __init__(self, store: "Store", note: Note) -> None:
        self.store, self.note, self.sources = store, note, Sources()
        self.own = self.sources.fingerprint(["rankfall.trial.kinds"])
        self.reasons: dict[str, str] = {}  # key -> the error that refuses the component, or nothing

    def refusal(self, kind: str, component: Component, setting: Surroundings, drawn: Drawn = None) -> str:
        """Return why a component cannot be used, or an empty string. `drawn` holds data that a task has drawn."""
        read = {name: value for name, value in asdict(setting).items() if name in KINDS[kind].reads}
        code = self.sources.fingerprint([module_of(kind, component)]), files_of(kind, component, kind)
        what = kind, component.name, component.options, code, read
        key = digest("trial", self.own, str(torch.__version__), *what)
        if key not in self.reasons:
            self.reasons[key] = "" if self.store.has_passed(key) else self.judge(key, kind, component, setting, drawn)
        return self.reasons[key]

    def judge(self, key: str, kind: str, component: Component, setting: Surroundings, drawn: Drawn) -> str:
        try:
            candidate = try_component(kind, component, setting, drawn)
        except Refused as refused:
            check_job()  # an edit in progress may well be refused
            return str(refused)
        if candidate.seconds > SLOW * candidate.calls and kind != "task":  # a task is called only a few times
            took = f"{candidate.calls} calls on small inputs took {candidate.seconds:.1f} s"
            self.note(f"slow: {candidate.title}: {took}")
        check_job()
        self.store.keep_trial(key, {"kind": kind, "name": component.name})
        return ""


def find_refused_cells(cells: "Sequence[Cell]", store: "Store", note: Note) -> dict[str, str]:
    """Return, by cell key, why one of the cell's components cannot be used."""
    checks = ComponentChecks(store, note)
    reasons: dict[tuple[Task, Architecture, Training], str] = {}
    drawn: dict[Task, Drawn] = {}

    def find_reason(cell: "Cell") -> str:
        if cell.task not in drawn:
            try:
                drawn[cell.task] = dataset_of(cell, store), cell.data_seed
            except (StoreError, Unproved):
                raise
            except Exception:  # the trial reports why; or only this seed has no data, which its training reports
                drawn[cell.task] = None
        known = drawn[cell.task]
        found = checks.refusal("task", cell.task.task, Surroundings(), known)
        if found or known is None:
            return found
        setting = setting_of(cell, shape_of(cell, known[0]))
        used = parts(cell.task, cell.architecture, cell.training)
        return next(filter(None, (checks.refusal(kind, part, setting) for kind, part in used)), "")

    for cell in cells:
        designs = cell.task, cell.architecture, cell.training
        if designs not in reasons:
            reasons[designs] = find_reason(cell)
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


def refuse_parts(measure: Component, store: "Store", note: Note) -> None:
    """Raise if a measure that builds its own networks is configured with a component that cannot be used. Its fact PARTS maps options to
    the kinds of component that they name."""
    checks = ComponentChecks(store, note)
    named = {
        kind: [Component.parse(value) for value in as_list(measure.options.get(option, []))]
        for option, kind in components.facts_of("measure", measure.name).get("PARTS", {}).items()
    }
    setting = Surroundings(trained=False, masked=any(part.name != "none" for part in named.get("mask", [])))
    for line in [checks.refusal(kind, part, setting) for kind, some in named.items() for part in some]:
        if line:
            raise Refused(line)


def check_agreement(cell: "Cell", store: "Store", device: torch.device, note: Note) -> None:
    """Raise if the machine's numbers for a cell's step differ from autograd's. `note` reports what could not be compared."""
    from rankfall.train.machine.agreement import disagreement  # requires numba, an optional dependency
    from thousandfold.graph import Untraceable

    own, where = Sources().fingerprint(["rankfall.train.machine.agreement"]), (processor(), device.type)
    key = digest("agreement", own, str(torch.__version__), where, cell.engine, cell.group, dict(cell.code))
    if store.has_passed(key):
        return
    title = f"{cell.task.name} / {cell.architecture.name} / {cell.training.name}"
    try:
        dataset = dataset_of(cell, store)
        data = stack_data([cell, cell], [dataset, dataset], device)
        batches = ends_of_epoch(cell, data)
        for kind, part in parts(cell.task, cell.architecture, cell.training):
            components.load(kind, part.name)
        check_job()  # programs are kept under the planned digests, so an edited text must not be traced
        what = disagreement(
            cell.architecture,
            shape_of(cell, dataset),
            cell.training,
            batches,
            cell.code,
            lambda text: note(f"{title}: {text}"),
            machine_of(cell.engine),
        )
    except (StoreError, Unproved, NoKernel):
        raise
    except Untraceable:  # autograd trains it, and says so
        return
    except Exception as error:  # a failing component is its cells' own failure, and their training reports it
        note(f"{cell.key}: could not check whether the machine agrees with autograd: {describe_error(error)}")
        return
    if what:
        raise RankfallError(f"{title}: {what}")
    check_job()
    store.keep_trial(key, {"kind": "agreement", "name": title})


def ends_of_epoch(cell: "Cell", data: Data) -> "list[Samples]":
    """Return the first batch of the first epoch for two members. Add the last batch if it is smaller, or if the objective draws something
    for each batch."""
    size, shuffle, seeds = cell.training.batch, cell.training.shuffle, [cell.seed, cell.seed + 1]
    last = steps_per_epoch(data.samples, size) - 1
    found = [next(data.epoch(seeds, 0, size, shuffle, first)) for first in sorted({0, last})]
    draws = make_draw(cell.training)(found[0]).drawn is not None
    return found[:1] if found[0].inputs.shape == found[-1].inputs.shape and not draws else found
