"""What a cell costs: a rough model, good to a factor of two or so, that sizes shards and estimates runs.

A training step of one member, in a stack, on one core:

    seconds = layers * CALL + 6 * parameters * tokens / RATE + 12 * heads' scores / RATE

CALL is the overhead of launching a layer's operations, shared by the members of a stack; 6 operations a parameter and token are one
multiplication and addition forward and two backward. Shards must not move with the machine or the weather, so the constants are fixed here;
what was measured counts where a configuration names it (see `history`).
"""

from dataclasses import dataclass
from typing import Any

from rankfall.design import Architecture, Task, Training

CALL = 2.0e-4  # seconds a layer and step
RATE = 6.0e10  # operations a second
SETUP = 0.02  # seconds a cell: data, initial values, evaluation, writing
SAMPLES, LENGTH = 1000, 32  # for tasks that have no options called train and length


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one cell as a member of a stack."""

    seconds: float
    megabytes: int | None = None  # of the whole job, where measured


def cell_seconds(task: Task, architecture: Architecture, training: Training) -> float:
    """Seconds that a cell takes as one member of a full stack."""
    samples, length = (_size(task, name, default) for name, default in (("train", SAMPLES), ("length", LENGTH)))
    batch = min(training.batch, samples)
    steps = training.epochs * -(-samples // batch)
    return SETUP + steps * step_seconds(architecture, batch, length)


def step_seconds(architecture: Architecture, batch: int, length: int) -> float:
    """One training step of one member."""
    a = architecture
    inner = inner_width(a)
    hidden = 0 if a.mlp.name == "none" else a.mlp_width or 4 * a.width
    parameters = a.depth * (4 * a.width * inner + 2 * a.width * hidden)
    scores = a.depth * batch * length * length * inner
    return a.depth * CALL * (2 if hidden else 1) + (6 * parameters * batch * length + 12 * scores) / RATE


def inner_width(a: Architecture) -> int:
    """Of all heads together; of an attention without heads about what a gated unit has."""
    return a.heads * (a.head_width or a.width // a.heads) if a.heads else 2 * a.width


def _size(task: Task, option: str, default: int) -> int:
    given: Any = task.task.options.get(option)
    return given if type(given) is int and given > 0 else default


EVALUATED = 256  # samples at once without a gradient, as in train/loop.py
MEGABYTES = 1500  # a job before its first network: interpreter, torch, libraries


def member_megabytes(task: Task, architecture: Architecture, training: Training) -> int:
    """Memory of one member: weights, and while it trains gradients, optimiser state and all layers' activations; the states of all
    layers and the activations of one where it is only looked at."""
    a = architecture
    samples, length = (_size(task, name, default) for name, default in (("train", SAMPLES), ("length", LENGTH)))
    inner = inner_width(a)
    hidden = 0 if a.mlp.name == "none" else a.mlp_width or 4 * a.width
    weights = 6 * a.depth * (4 * a.width * inner + 2 * a.width * hidden)
    tokens = min(training.batch if training.epochs else EVALUATED, samples) * length
    layer = tokens * (8 * a.width + 4 * inner + 3 * hidden + 4 * (a.heads or 1) * length)
    kept = a.depth * layer if training.epochs else layer + a.depth * tokens * a.width
    return 1 + (weights + kept) * (8 if training.dtype == "float64" else 4) // 2**20
