"""Choose the engine of a cell's training steps: machine (thousandfold, in `engine/`, for everything that can be traced), machine_gpu (the
same on a GPU) or plain (autograd, for everything).

The choice depends on the configuration and the code alone, never on the installed packages. The engines' numbers differ by rounding, so the
sources of the engine are in the keys of the cells that it trains. The machine runs the components' own code. A component that cannot be
traced declares `TRACED = False`. If it does not, the job notices and trains its cells by autograd.
"""

import importlib.util
from collections import Counter
from collections.abc import Iterable, Mapping

from rankfall.components import facts_of, parts_of
from rankfall.design import Architecture, Task, Training
from rankfall.errors import RankfallError
from rankfall.run.config.problems import problem
from rankfall.run.config.types import Compute
from rankfall.run.plan.cell import Cell
from rankfall.run.plan.cost import sizes

PLAIN, MACHINE, MACHINE_GPU = "plain", "machine", "machine_gpu"
MACHINES = (MACHINE, MACHINE_GPU)
ROOTS = {
    PLAIN: (),
    MACHINE: ("rankfall.train.machine.engine",),
    MACHINE_GPU: ("rankfall.train.machine.gpu",),
}
UNTRIED = "where a job cannot trace a network, autograd trains it"
UNTRACED = "the machine cannot trace them: what it stops at is in the log of their job"
TOKENS = 128  # longest sequence for which the machine was measured
SEQUENCES = 4  # smallest batch: a vector holds 4 to 16 sequences at one position
# Smallest stack and largest width on a GPU: for others, recorded steps of autograd are as fast (docs/cluster.md).
MEMBERS, WIDTH = 128, 128


def engine_of(compute: Compute, task: Task, architecture: Architecture, training: Training) -> str:
    """Return the engine of a cell. Raise if the configuration requires an engine that does not support the cell."""
    if not training.epochs or compute.engine == PLAIN:
        return PLAIN
    reason = refusal(compute.device, task, architecture, training)
    if reason and compute.engine == MACHINE:
        fault = f"{MACHINE!r} does not serve {task.name} / {architecture.name} / {training.name}: {reason}"
        raise problem(
            "compute.engine", fault, hint="`auto` computes such cells by autograd and all others by the machine"
        )
    if reason or (compute.engine != MACHINE and why_slower(compute, architecture)):
        return PLAIN
    return MACHINE if compute.device == "cpu" else MACHINE_GPU


def why_slower(compute: Compute, architecture: Architecture) -> str | None:
    """Return why the machine is not faster on a GPU, or None if it is."""
    if compute.device == "cpu":
        return None
    if compute.stack < MEMBERS:
        return f"compute.stack: {compute.stack}; on a GPU the machine pays from {MEMBERS} networks at once"
    if architecture.width > WIDTH:
        return f"width {architecture.width}; on a GPU the machine pays up to {WIDTH}"
    return None


def refusal(device: str, task: Task, architecture: Architecture, training: Training) -> str | None:
    """Return why the machine does not support such cells, or None if it does."""
    if device == "auto":
        return "device auto, which may be a processor or a GPU: the machine's numbers are of one of them"
    if training.dtype != "float32":
        return training.dtype
    if training.precision != "full":
        return f"precision {training.precision}"
    for kind, part in parts_of(task, architecture, training):
        if facts_of(kind, part.name).get("TRACED") is False:
            return f"{kind} {part.name}, which says TRACED = False"
    if device != "cpu" and facts_of("objective", training.objective.name).get("LENGTH_VARIES"):
        return (
            f"objective {training.objective.name}, whose steps differ in length: on a GPU each length would be compiled"
        )
    # Gradients that cancel exactly are 0 in autograd. With more than two tokens the kernels leave rounding noise, which Adam turns into
    # whole steps, since it divides by the size of a gradient.
    if facts_of("task", task.task.name).get("SYMMETRIC"):
        return f"task {task.task.name}, whose samples are symmetric"
    samples, tokens = sizes(task)
    batch = min(training.batch, samples)
    if batch < SEQUENCES:
        return f"batches of {batch}"
    return f"{tokens} tokens" if tokens > TOKENS else None


def engines(
    cells: Iterable[Cell], compute: Compute, trained: Mapping[str, str | None] | None = None
) -> dict[tuple[str, str], Counter[str]]:
    """Return (engine, why not the machine) -> number of cells of each architecture that the engine trains.

    `trained` maps the keys of stored cells to the engine that trained them. It differs from the plan's if the machine cannot trace a
    cell."""
    reasons: dict[tuple[Task, Architecture, Training], str] = {}
    counts: dict[tuple[str, str], Counter[str]] = {}
    for cell in cells:
        if not cell.training.epochs:
            continue
        designs = cell.task, cell.architecture, cell.training
        if designs not in reasons:
            slow = refusal(compute.device, *designs) or why_slower(compute, cell.architecture)
            asked = f"asked for by compute.engine: {compute.engine}; without it a faster engine computes them"
            reasons[designs] = "" if cell.engine in MACHINES else slow or asked
        engine, reason = cell.engine, reasons[designs]
        if engine in MACHINES and trained is not None:
            if cell.key not in trained:
                reason = UNTRIED
            elif trained[cell.key] not in (*MACHINES, None):
                engine, reason = PLAIN, UNTRACED
        counts.setdefault((engine, reason), Counter())[cell.architecture.name] += 1
    return counts


def check_installed(engines: Iterable[str]) -> None:
    """Raise if one of these engines cannot run on this computer."""
    needed = ("thousandfold", "numba")
    if set(MACHINES) & set(engines) and any(importlib.util.find_spec(name) is None for name in needed):
        raise RankfallError(
            "compute.engine: the machine computes cells of this job and needs numba, which is not installed; "
            "`pip install 'rankfall[fast]'`, or say `compute: {engine: plain}`, which makes other keys"
        )
