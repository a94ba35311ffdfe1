"""Which engine computes the training steps of a cell: fused (`train/fused`, by hand), machine (`train/machine`, whatever can be traced) or
plain (autograd, which serves everything).

The choice follows from the configuration and the code alone, never from what is installed on a computer, since numbers of the three differ
by rounding: sources of an engine are in the keys of the cells that it serves. What was edited after the fused engine had been checked
against it, a component or the code around them, it no longer serves. The machine runs what components say, edited or not; one that cannot
be traced says so by `TRACED = False`, and a job that finds one which does not say so ends with a line.
"""

import importlib.util
from collections import Counter
from collections.abc import Iterable

from rankfall.components import describe, locate
from rankfall.design import Architecture, Component, Task, Training
from rankfall.errors import RankfallError
from rankfall.run.config.problems import problem
from rankfall.run.config.rules import parts
from rankfall.run.config.types import Compute
from rankfall.run.keys.fingerprint import Sources
from rankfall.run.plan.cell import Cell
from rankfall.run.plan.cost import sizes

PLAIN, FUSED, MACHINE = "plain", "fused", "machine"
ROOTS = {PLAIN: (), FUSED: ("rankfall.train.fused.engine",), MACHINE: ("rankfall.train.machine.engine",)}
FASTEST = {
    "auto": (FUSED, MACHINE),
    FUSED: (FUSED,),
    MACHINE: (MACHINE,),
    PLAIN: (),
}  # compute.engine -> what is tried first
TOKENS = 128  # the most that the engines were measured with
SEQUENCES = 4  # the least: a vector holds 4 to 16 sequences of one place

# Kind -> component -> digest of its code, with which the fused engine was tested (tests/train/fused/test_engine.py). Components of other
# kinds do not matter to it.
CHECKED: dict[str, dict[str, str]] = {
    "block": {"attention": "43b1b82e1496"},
    "attention": {"multihead": "8f3876002fe0"},
    "normaliser": {"softmax": "ec2c95b5279d"},
    "position": {
        "none": "354ec52aaee2",
        "learned": "5ca617fac57f",
        "sinusoidal": "7148ca3124c3",
        "toeplitz": "55df2806ad22",
        "symmetric": "417002598d8c",
        "t5": "93fb46e6da44",
        "alibi": "96ac609433a6",
        "rope": "7a7511704a14",
    },
    "residual": {
        "add": "0c8893099662",
        "none": "81d879378a8d",
        "scaled": "e5baa02c4d3e",
        "depth_scaled": "f4ef6d40dc90",
        "convex": "2148f3edf594",
    },
    "mlp": {"none": "a44e73d2f577", "gelu": "9bac1d5ec75c", "relu": "9f4fa2f7e14c"},
    "norm": {"none": "4e04fe068a32", "layer": "3d847f374995"},
    "embedding": {
        "token": "1e6ac5410ff6",
        "mapped_token": "26152a07344c",
        "linear": "9c3cc6cc0983",
        "coordinates": "028b2aca274a",
    },
    "head": {"classifier": "7228f17b237d", "regression": "dc5e51a076f6"},
    "sentinels": {"none": "b1cfe998ed39"},
    "objective": {"classes": "a39bedbbd469", "values": "4b863141c8e6", "masked_tokens": "865417543aff"},
    "optimizer": {"adam": "3440a512824c", "adamw": "8783d8f5d78c", "sgd": "0951985da33c"},
}

# The code around components that the fused engine computes in its own way as well, each file by its digest: how a network is put together,
# what dropout drops, the gradient's norm, clip and end of a member.
REPEATED: dict[str, str] = {
    "rankfall.nets.network": "e9f3dcf45b53",
    "rankfall.nets.dropout": "1f45a6e73491",
    "rankfall.train.dropout": "dab30a16f355",
    "rankfall.train.members": "af793b6ade8b",
    "rankfall.train.philox": "94b0dc5efb15",
}


def engine_of(compute: Compute, task: Task, architecture: Architecture, training: Training, sources: Sources) -> str:
    """The engine of a cell; an error if the configuration insists on one and it does not serve the cell."""
    if not training.epochs:
        return PLAIN
    for engine in FASTEST[compute.engine]:
        why = refusal(engine, compute.device, task, architecture, training, sources)
        if not why:
            return engine
        if compute.engine == engine:
            what = f"{engine!r} does not serve {task.name} / {architecture.name} / {training.name}: {why}"
            raise problem(
                "compute.engine", what, hint="`auto` computes such cells by the fastest engine that serves them"
            )
    return PLAIN


def refusal(
    engine: str, device: str, task: Task, architecture: Architecture, training: Training, sources: Sources
) -> str | None:
    """Why an engine does not serve such cells; None if it does."""
    if device != "cpu":
        return f"device {device}, where it computes on cpu alone"
    if training.dtype != "float32":
        return training.dtype
    if training.precision != "full":
        return f"precision {training.precision}"
    own = untraced(task, architecture, training) if engine == MACHINE else unknown(task, architecture, training)
    if own:
        return own
    # Gradients that cancel exactly are exactly 0 by autograd; of more than two tokens the kernels leave rounding noise, and Adam, which
    # divides by a gradient's size, makes whole steps of it.
    data = describe("task", task.task.name)
    if data and data.facts.get("SYMMETRIC"):
        return f"task {task.task.name}, whose samples are symmetric"
    samples, tokens = sizes(task)
    batch = min(training.batch, samples)
    if batch < SEQUENCES:
        return f"batches of {batch}"
    if tokens > TOKENS:
        return f"{tokens} tokens"
    if engine == MACHINE:
        return None
    for module, digest in REPEATED.items():
        if digest_of(module, sources) != digest:
            return f"{module} was edited"
    return next(
        (f"{kind} {part.name} was edited" for kind, part in edited(task, architecture, training, sources)), None
    )


def unknown(task: Task, architecture: Architecture, training: Training) -> str | None:
    """A part that the fused engine does not know."""
    used = parts(task, architecture, training)
    return next((f"{kind} {one.name}" for kind, one in used if kind in CHECKED and one.name not in CHECKED[kind]), None)


def untraced(task: Task, architecture: Architecture, training: Training) -> str | None:
    """A part that says it cannot be traced."""
    for kind, part in parts(task, architecture, training):
        found = describe(kind, part.name)
        if found and found.facts.get("TRACED") is False:
            return f"{kind} {part.name}, which says TRACED = False"
    return None


def edited(
    task: Task, architecture: Architecture, training: Training, sources: Sources
) -> Iterable[tuple[str, Component]]:
    """Parts whose code is not what the fused engine was tested with."""
    for kind, part in parts(task, architecture, training):
        if kind in CHECKED and CHECKED[kind][part.name] != code_of(kind, part.name, sources):
            yield kind, part


def code_of(kind: str, name: str, sources: Sources) -> str:
    found = locate(kind, name)
    assert found is not None
    return sources.fingerprint([found.module])[:12]


def digest_of(module: str, sources: Sources) -> str:
    """Of one file alone."""
    found = sources.source(module)
    assert found is not None
    return found.digest


def engines(cells: Iterable[Cell], compute: Compute) -> dict[tuple[str, str], Counter[str]]:
    """(engine, why not a faster one) -> by architecture, how many cells are trained by it."""
    sources, reasons = Sources(), {}
    found: dict[tuple[str, str], Counter[str]] = {}
    for cell in cells:
        if not cell.training.epochs:
            continue
        designs = cell.task, cell.architecture, cell.training
        if designs not in reasons:
            reasons[designs] = why_not_faster(cell, compute, sources)
        found.setdefault((cell.engine, reasons[designs]), Counter())[cell.architecture.name] += 1
    return found


def why_not_faster(cell: Cell, compute: Compute, sources: Sources) -> str:
    designs = cell.task, cell.architecture, cell.training
    faster = {FUSED: None, MACHINE: FUSED, PLAIN: MACHINE}[cell.engine]
    if faster is None:
        return ""
    why = refusal(faster, compute.device, *designs, sources)
    return why or f"asked for by compute.engine: {compute.engine}; without it a faster engine computes them"


def check_installed(engines: Iterable[str]) -> None:
    """Raise if one of these engines cannot run on this computer."""
    if {FUSED, MACHINE} & set(engines) and importlib.util.find_spec("numba") is None:
        raise RankfallError(
            "compute.engine: a fast engine computes cells of this job and needs numba, which is not installed; "
            "`pip install 'rankfall[fast]'`, or say `compute: {engine: plain}`, which makes other keys"
        )
