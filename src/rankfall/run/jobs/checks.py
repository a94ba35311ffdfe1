"""Check cells before training: components pass their trials, and the machine's numbers agree with autograd's.

Each check runs once. The store keeps a passed check under the digest of everything that the check depends on: the component's code and
options with the sizes that its kind reads of the surrounding network, or the code of a cell's step with its processor; and the code of the
check and the version of torch. A refusal is not stored: repeating it takes milliseconds, and its cause may lie outside of the component,
such as a missing package.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict

import torch

from rankfall import components
from rankfall.design import Architecture, Component, Task, Training
from rankfall.disk import StoreError
from rankfall.errors import NoKernel, RankfallError, describe_error
from rankfall.filters import as_list
from rankfall.nets.network import Shape
from rankfall.run.guards import Unproved, check_job
from rankfall.run.jobs.cells import Datasets, dataset_of, shape_of, stack_data
from rankfall.run.jobs.engine import machine_of
from rankfall.run.jobs.processor import processor
from rankfall.run.plan.cell import Cell, digest
from rankfall.run.plan.engines import MACHINE, MACHINE_GPU, MACHINES, check_installed
from rankfall.run.store import Store
from rankfall.sources.fingerprint import Sources
from rankfall.tasks._dataset import Dataset
from rankfall.train.data import Data, steps_per_epoch
from rankfall.train.objectives._base import Samples
from rankfall.train.recipe import make_draw
from rankfall.trial.candidate import MOST_SYMBOLS, Drawn, Refused, Surroundings, longest
from rankfall.trial.kinds import KINDS, try_component

SLOW = 0.1  # seconds per call above which the component is reported as slow
Note = Callable[[str], None]
Subject = tuple[str, Component, Surroundings]  # kind, component, and the network around it


def check_cells(
    cells: Sequence[Cell], store: Store, device: torch.device, note: Note, datasets: Datasets
) -> dict[str, str]:
    """Return cell key -> reason for the cells that cannot be trained.

    Raise if an engine cannot run, has no device, or disagrees with autograd, since that is no cell's fault. `datasets` receives the data
    that the checks read, for the training after them."""
    check_engines(cells, device)
    note("checking components, and the engine against autograd, once for each version of their code")
    refused = find_refused_cells(cells, store, note, datasets)
    firsts = {cell.group: cell for cell in reversed(cells) if cell.engine in MACHINES and cell.key not in refused}
    for cell in reversed(firsts.values()):
        check_agreement(cell, store, device, note, datasets)
    return refused


def check_engines(cells: Sequence[Cell], device: torch.device) -> None:
    """Compile the kernels of these cells' engines; raise if an engine cannot run here.

    A GPU may be missing in a measuring job, which retrains lost cells."""
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

    def __init__(self, store: Store, note: Note) -> None:
        self.store, self.note, self.sources = store, note, Sources()
        self.trial_code = self.sources.fingerprint(["rankfall.trial.kinds"])
        self.drawn: dict[Component, Drawn] = {}  # task -> data that the job drew before its trial

    def find_refusals(self, subjects: Iterable[Subject]) -> dict[Subject, str]:
        """Return why each component cannot be used, or an empty string."""
        modules = {subject: components.module_of(subject[0], subject[1]) for subject in subjects}
        code = {module: self.sources.fingerprint([module]) for module in modules.values()}
        keys = {subject: self.key_of(*subject, code[module]) for subject, module in modules.items()}
        missing = {key: subject for subject, key in keys.items() if not self.store.has_passed(key)}
        reasons = {key: self.judge(*subject) for key, subject in missing.items()}
        if missing:
            check_job()  # first: an edit in progress may be the cause of a refusal
        for key, (kind, component, _) in missing.items():
            if not reasons[key]:
                self.store.keep_trial(key, {"kind": kind, "name": component.name})
        return {subject: reasons.get(key, "") for subject, key in keys.items()}

    def key_of(self, kind: str, component: Component, setting: Surroundings, code: str) -> str:
        """Return the key under which the store keeps a passed trial."""
        sizes = {name: value for name, value in asdict(setting).items() if name in KINDS[kind].reads}
        text = (kind, component.name, component.options, code, sizes)
        return digest("trial", self.trial_code, str(torch.__version__), *text)

    def judge(self, kind: str, component: Component, setting: Surroundings) -> str:
        """Try a component. Return the error that refuses it, or an empty string."""
        try:
            candidate = try_component(kind, component, setting, self.drawn.get(component))
        except Refused as refused:
            return str(refused)
        if candidate.seconds > SLOW * candidate.calls and kind != "task":  # a task is called only a few times
            took = f"{candidate.calls} calls on small inputs took {candidate.seconds:.1f} s"
            self.note(f"slow: {candidate.title}: {took}")
        return ""


def find_refused_cells(cells: Sequence[Cell], store: Store, note: Note, datasets: Datasets) -> dict[str, str]:
    """Return cell key -> reason for the cells with a component that cannot be used.

    Tasks are tried first, since the data give the sizes for the trials of the other components."""
    checks = ComponentChecks(store, note)
    firsts = {(cell.task, cell.architecture, cell.training): cell for cell in reversed(cells)}
    data: dict[Task, Dataset | None] = {}
    for cell in {cell.task: cell for cell in firsts.values()}.values():
        try:
            dataset = dataset_of(cell, store, datasets)
        except (StoreError, Unproved):
            raise
        except Exception:  # the trial reports the error, or training does if it is this seed's alone
            data[cell.task] = None
        else:
            data[cell.task], checks.drawn[cell.task.task] = dataset, (dataset, cell.data_seed)
    tasks = checks.find_refusals([("task", task.task, Surroundings()) for task in data])
    subjects: dict[tuple[Task, Architecture, Training], list[Subject]] = {}
    for designs, cell in firsts.items():
        known, subjects[designs] = data[cell.task], [("task", cell.task.task, Surroundings())]
        if known is not None and not tasks[subjects[designs][0]]:
            setting = setting_of(cell, shape_of(cell, known))
            parts = [(kind, part) for kind, part in components.parts_of(*designs) if kind != "task"]
            subjects[designs] += [(kind, part, setting) for kind, part in parts]
    refusals = checks.find_refusals([subject for group in subjects.values() for subject in group])
    reasons = {designs: next(filter(None, map(refusals.get, group)), "") for designs, group in subjects.items()}
    by_key = {cell.key: reasons[cell.task, cell.architecture, cell.training] for cell in cells}
    refused = {key: line for key, line in by_key.items() if line}
    for line, count in Counter(refused.values()).items():
        note(f"refused, so {count} cell{'s' * (count != 1)} failed: {line}")
    return refused


def setting_of(cell: Cell, shape: Shape) -> Surroundings:
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


def refuse_parts(measure: Component, store: Store, note: Note) -> None:
    """Raise if a measure that builds networks has an option that names a component which cannot be used.

    Its fact PARTS maps options to the kinds of component that they name."""
    checks = ComponentChecks(store, note)
    parts = {
        kind: [Component.parse(value) for value in as_list(measure.options.get(option, []))]
        for option, kind in components.facts_of("measure", measure.name).get("PARTS", {}).items()
    }
    setting = Surroundings(trained=False, masked=any(part.name != "none" for part in parts.get("mask", [])))
    subjects = [(kind, part, setting) for kind, group in parts.items() for part in group]
    for line in filter(None, checks.find_refusals(subjects).values()):
        raise Refused(line)


def check_agreement(
    cell: Cell, store: Store, device: torch.device, note: Note, datasets: Datasets | None = None
) -> None:
    """Raise if the machine's numbers for a cell's step differ from autograd's. `note` takes comparisons that could not be made."""
    from rankfall.train.machine.agreement import disagreement  # requires numba, an optional dependency
    from thousandfold.graph import Untraceable

    check_code, hardware = Sources().fingerprint(["rankfall.train.machine.agreement"]), (processor(), device.type)
    key = digest("agreement", check_code, str(torch.__version__), hardware, cell.engine, cell.group, dict(cell.code))
    if store.has_passed(key):
        return
    title = f"{cell.task.name} / {cell.architecture.name} / {cell.training.name}"
    try:
        dataset = dataset_of(cell, store, datasets)
        data = stack_data([cell, cell], [dataset, dataset], device)
        batches = ends_of_epoch(cell, data)
        for kind, part in components.parts_of(cell.task, cell.architecture, cell.training):
            components.load(kind, part.name)
        check_job()  # programs are kept under the planned digests, so an edited text must not be traced
        fault = disagreement(
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
    except Untraceable:  # autograd trains it, and its training reports so
        return
    except Exception as error:  # a failing component fails its cells, and their training reports it
        note(f"{cell.key}: could not check whether the machine agrees with autograd: {describe_error(error)}")
        return
    if fault:
        raise RankfallError(f"{title}: {fault}")
    check_job()
    store.keep_trial(key, {"kind": "agreement", "name": title})


def ends_of_epoch(cell: Cell, data: Data) -> list[Samples]:
    """Return the first batch of the first epoch for two members.

    Add the last batch if it is smaller, or if the objective draws something for each batch."""
    size, shuffle, seeds = cell.training.batch, cell.training.shuffle, [cell.seed, cell.seed + 1]
    last = steps_per_epoch(data.samples, size) - 1
    batches = [next(data.epoch(seeds, 0, size, shuffle, first)) for first in sorted({0, last})]
    draws = make_draw(cell.training)(batches[0]).drawn is not None
    return batches[:1] if batches[0].inputs.shape == batches[-1].inputs.shape and not draws else batches
