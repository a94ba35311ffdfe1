"""Model the cost of a cell, to size shards and to estimate runs. The model is accurate within a factor of about two.

A training step of a member of a stack, on one core, takes

    seconds = layers * CALL + 6 * parameters * tokens / RATE + 12 * heads' scores / RATE

CALL is the overhead of launching a layer's operations, divided among the members of a stack. The 6 operations per parameter and token are
one multiplication and addition forward and two backward. The evaluation at the end is forward only; an untrained network has nothing else.
Shards must be the same on all machines, so the constants are fixed here. A configuration may name a file of measured costs instead (see
`history`).
"""

from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import Gt

from rankfall import components
from rankfall.design import Architecture, Task, Training
from rankfall.run.config.rules import lengths

CALL = {"plain": 2.0e-4, "machine": 4.0e-5, "machine_gpu": 4.0e-6}  # seconds per layer and step, by engine
RATE = {"plain": 6.0e10, "machine": 8.0e10, "machine_gpu": 8.0e12}  # operations per second
SETUP = 0.02  # seconds per cell: data, initial values, evaluation, writing
SAMPLES, LENGTH = 1000, 32  # samples and tokens of tasks without the option `train`, or `length` and `points`


# Seconds of a whole job on one core or, for a job that measures or trains cells, of its part before the first cell. Means of the default
# run on two machines with two cores, one of them busy. A run takes RANGE times the sum.
JOBS = {
    "data": 2.0,
    "train": 2.0,
    "measure": 0.5,
    "measure_freely": 10.0,
    "table": 0.8,
    "figure": 6.5,
    "page": 10.0,
}
CELL = 0.25  # seconds per cell, for a measure whose file declares no COST
# Operations of a pass over the test set at which a cell takes the whole COST of a measure, and the share of COST of the smallest cell.
USUAL, LEAST = 3e8, 0.1
TRACE = 0.04  # seconds per layer of a group of cells that the machine trains, before its first step
BEGIN = 5.0  # seconds of a run before its first job: Snakemake and the plan
RANGE = (0.6, 1.5)  # lowest and highest duration of a run, as multiples of its estimate


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a cell as a member of a stack."""

    seconds: Annotated[float, Gt(0)]
    megabytes: int | None = None  # of the whole job, if measured
    members: int = 1  # of the largest measured stack


def cell_seconds(task: Task, architecture: Architecture, training: Training, engine: str = "plain") -> float:
    """Return the seconds that a cell takes as a member of a full stack."""
    steps, batch, length = steps_of(task, training)
    trained, tested = sizes(task)[0], _size(task, "test", 0)
    evaluated = tested or trained if not training.epochs else trained + tested  # as in run/jobs/training.py
    forward = step_operations(architecture, evaluated, length) / 3 / RATE["plain"]
    return SETUP + steps * step_seconds(architecture, batch, length, engine) + forward


def steps_of(task: Task, training: Training) -> tuple[int, int, int]:
    """Return the number of steps, the samples per step, and the tokens per sample."""
    samples, length = sizes(task)
    batch = min(training.batch, samples)
    return training.epochs * -(-samples // batch), batch, length


def step_seconds(architecture: Architecture, batch: int, length: int, engine: str = "plain") -> float:
    """Return the seconds of one training step of one member."""
    a = architecture
    calls = a.depth * CALL[engine] * (1 if a.mlp.name == "none" else 2)
    return calls + step_operations(a, batch, length) / RATE[engine]


def measured_seconds(seconds: float, task: Task, architecture: Architecture) -> float:
    """Return the seconds of a measure for a cell. The measure declares the seconds of a cell of the usual size, which are the maximum."""
    samples, length = sizes(task)
    operations = step_operations(architecture, _size(task, "test", samples), length) / 3
    return seconds * min(1.0, LEAST + operations / USUAL)


def step_operations(architecture: Architecture, batch: int, length: int) -> float:
    """Return the operations of the layers in one step, without the head."""
    a = architecture
    inner = inner_width(a)
    hidden = 0 if a.mlp.name == "none" else a.mlp_width or 4 * a.width
    parameters = a.depth * (4 * a.width * inner + 2 * a.width * hidden)
    scores = a.depth * batch * length * mixed_width(a, length) * inner
    return 6 * parameters * batch * length + 12 * scores


def inner_width(a: Architecture) -> int:
    """Return the width of all heads together. For an attention without heads, return about the width of a gated unit."""
    return a.heads * (a.head_width or a.width // a.heads) if a.heads else 2 * a.width


def mixed_width(a: Architecture, length: int) -> int:
    """Return how many numbers a token keeps of the others in each head.

    They are a score per token or, if an attention declares neither scores nor weights, a sum as wide as the head."""
    facts = components.facts_of("attention", a.attention.name)
    offers = facts.get("OFFERS")  # an attention without OFFERS may have them
    scored = offers is None or "scores" in offers or "weights" in facts.get("PROVIDES", ())
    return length if scored else inner_width(a) // (a.heads or 1)


def _size(task: Task, option: str, default: int) -> int:
    """Return an option of a task if it is a positive integer, else the default."""
    value: Any = task.task.options.get(option)
    return value if type(value) is int and value > 0 else default


EVALUATED = 256  # samples evaluated at once without a gradient, as in train/data.py
PROCESS = 280  # megabytes of a job before its first network: interpreter, torch, libraries
AT_ONCE = 0.45  # share of a layer's numbers that exist at once without a gradient
HIDDEN, LOGITS = 0.15, 128  # defaults of masked_tokens: share of hidden tokens, and megabytes of logits at once


def stack_megabytes(task: Task, architecture: Architecture, training: Training, members: int) -> int:
    """Return the peak memory of a job that trains one stack, in megabytes."""
    member = member_megabytes(task, architecture, training)
    if training.objective.name != "masked_tokens":
        return PROCESS + members * member
    options = training.objective.options
    samples, length = sizes(task)
    numbers = options.get("rate", HIDDEN) * min(EVALUATED, samples) * length * symbols(task)[1]
    logits = min(members * numbers * _bytes(training) / 2**20, options.get("megabytes", LOGITS))
    return PROCESS + members * member + round(2 * logits)


def member_megabytes(task: Task, architecture: Architecture, training: Training) -> int:
    """Return the memory of a member, in megabytes: weights, and the larger of two peaks.

    Training needs gradients, optimiser state and the activations of all layers. Evaluation needs the activations of a single layer, but for
    many samples at once."""
    a = architecture
    samples, length = sizes(task)
    inner = inner_width(a)
    hidden = 0 if a.mlp.name == "none" else a.mlp_width or 4 * a.width
    weights = a.depth * (4 * a.width * inner + 2 * a.width * hidden) + sum(symbols(task)) * a.width

    def token(length: int) -> int:
        """Return the numbers per token and layer."""
        return 8 * a.width + 4 * inner + 3 * hidden + 4 * (a.heads or 1) * mixed_width(a, length)

    trained, evaluated = (min(batch, samples) * length for batch in (training.batch, EVALUATED))
    answers = 0 if training.objective.name == "masked_tokens" else symbols(task)[1]
    evaluation = evaluated * (AT_ONCE * token(length) + 2 * answers)
    tested = lengths(components.facts_of("task", task.task.name), task.task.options)
    for tested_length in (n for n in tested if n > length):  # as many tokens as at that length, in fewer samples
        tested_tokens = max(tested_length, min(EVALUATED, _size(task, "test", samples)) * length)
        evaluation = max(evaluation, tested_tokens * (AT_ONCE * token(tested_length) + 2 * answers))
    if not training.epochs:
        evaluation += evaluated * a.depth * a.width  # a measure may keep the states of all layers
        return 1 + round((weights + evaluation) * _bytes(training) / 2**20)
    training_peak = trained * (a.depth * token(length) + 3 * answers)
    return 1 + round((6 * weights + max(training_peak, evaluation)) * _bytes(training) / 2**20)


def sizes(task: Task) -> tuple[int, int]:
    """Return the number of training samples and the tokens of a sample, from options or the task's facts."""
    tokens = components.facts_of("task", task.task.name).get("TOKENS")
    return _size(task, "train", SAMPLES), tokens or _size(task, "length", 0) or _size(task, "points", LENGTH)


def symbols(task: Task) -> tuple[int, int]:
    """Return the size of the vocabulary and the number of classes, if options declare them."""
    vocabulary = max(_size(task, name, 0) for name in ("vocabulary", "symbols"))
    return vocabulary, _size(task, "labels", vocabulary)


def _bytes(training: Training) -> int:
    """Return the bytes of a number."""
    return 8 if training.dtype == "float64" else 4
