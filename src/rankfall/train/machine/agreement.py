"""Compare the machine with autograd before training starts.

Two members compute the first batch and, if it is smaller, the last batch of an epoch, at two steps of dropout. The counts of targets must
be equal. The distance of loss and gradient from those in float64 must be at most FACTOR times that of autograd in float32, or LEAST of
their size. Some networks amplify rounding: 24 layers of softpick, which divides by scores near 0, have gradients with a relative error of
.0005 to .1, depending on the last bits. There the bound is the largest distance of several steps of autograd in float32, with weights
changed by up to a last bit. If a last bit changes a gradient by an eighth of its size or more, as in 24 layers of large weights without
norms, the passes cannot be compared. Gradients that are exactly 0 by autograd are also checked (`exact_zeros.py`). Then both engines take
two steps of the optimiser along the same gradients. Weights and slots must then be equal except for rounding.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from rankfall.design import Architecture, Training
from rankfall.nets.network import Shape
from rankfall.random_streams import stream
from rankfall.train import recipe
from rankfall.train.machine.engine import NO_CODE, Machined
from rankfall.train.machine.exact_zeros import Result, by_autograd, find_remainder, initial, to_double
from rankfall.train.members import RUNNING, Members
from rankfall.train.objectives._base import Graded, Samples

FACTOR = 8.0  # times the distance of autograd in float32 from float64
LEAST = 2e-5  # relative distance below which all results agree
EVALUATION = 1e-3  # relative distance of a loss: rounding stays below it even where it is amplified, errors exceed it
TIMES = 8  # steps of autograd with random rounding of the weights
LAST_BIT = 2.0**-24  # largest relative change by rounding
STEPS = (0, 1)  # steps of dropout
DIFFERS = "the machine does not agree with autograd: "
REMEDY = "say `compute: {engine: plain}`, or `TRACED = False` in the file of the component that makes the difference"
NOT_COMPARED = "its passes are not compared with autograd: a last bit of its weights changes most of its gradient"
SYMMETRIC = (
    "data that are symmetric, such as tokens x and -x, and Adam would make whole steps of this rounding. Say `compute: {engine: plain}`, "
    "or `SYMMETRIC = True` in the file of the task"
)


def disagreement(
    architecture: Architecture,
    shape: Shape,
    training: Training,
    batches: Iterable[Samples],
    code: Mapping[str, str] = NO_CODE,
    note: Callable[[str], None] = lambda _: None,
    machined: type[Machined] = Machined,
) -> str:
    """Return text with the difference and a remedy, or an empty text if the engines agree.

    The networks are temporary. `note` is called if the passes cannot be compared.
    """
    for number, batch in enumerate(batches):
        machine, plain, double = (
            initial(architecture, shape, replace(training, dtype=dtype), batch)
            for dtype in (training.dtype, training.dtype, "float64")
        )
        machine.engine = engine = machined(machine, architecture, shape, training, code)
        double.weights.copy_(plain.weights)
        for step in STEPS if training.dropout else STEPS[:1]:
            machine.step_count = step
            arguments = plain, training, batch, step
            expected = by_autograd(*arguments)  # first, so that an error of a component is not blamed on the machine
            exact = by_autograd(double, training, to_double(batch), step)
            actual = engine.passes(machine, batch), machine.grads
            difference = count_difference(actual[0], expected[0]) or result_difference(
                actual, expected, exact, arguments
            )
            if difference and is_mostly_rounding(exact, arguments):
                note(NOT_COMPARED)
                break
            if difference:
                return f"{DIFFERS}{difference} (batch of {batch.inputs.shape[1]}, step {step}); {REMEDY}"
            first = number == step == 0
            if first and (remainder := find_remainder(plain, double, training, batch, actual, expected, exact)):
                return f"the gradient of {remainder.parameter} is 0 by autograd and {remainder.value:.1g} by the machine: {SYMMETRIC}"
        else:
            difference = evaluation_difference(machine, training, batch)
            if difference and not is_mostly_rounding(exact, arguments):
                return f"{DIFFERS}{difference}; {REMEDY}"
        if difference := step_difference(engine, machine, plain, expected[0].loss):
            return f"{DIFFERS}{difference}; {REMEDY}"
    return ""


def later_difference(engine: Machined, members: Members, batch: Samples, k: int) -> str:
    """Return the difference in the step that member k is about to take, with a remedy, or an empty text. Nothing is trained."""
    architecture, shape, *_ = engine.design
    training, step, single = engine.training, members.step_count, pick_member(batch, k)
    plain, double = (
        initial(architecture, shape, replace(training, dtype=dtype), single) for dtype in (training.dtype, "float64")
    )
    plain.weights.copy_(members.weights[k : k + 1])
    double.weights.copy_(plain.weights)
    arguments = plain, training, single, step
    expected, exact = by_autograd(*arguments), by_autograd(double, training, to_double(single), step)
    if not (expected[1].isfinite().all() and expected[0].loss.isfinite().all()):  # the member ends with any engine
        return ""
    graded = engine.passes(members, batch)
    actual = replace(graded, loss=graded.loss[k : k + 1]), members.grads[k : k + 1].clone()
    difference = result_difference(actual, expected, exact, arguments)
    return f"{DIFFERS}{difference}; {REMEDY}" if difference and not is_mostly_rounding(exact, arguments) else ""


def pick_member(batch: Samples, k: int) -> Samples:
    """Return the batch of one member."""
    inputs, targets = batch.inputs[k : k + 1], batch.targets[k : k + 1]
    drawn = None if batch.drawn is None else tuple(x[k : k + 1] for x in batch.drawn)
    same = batch.targets is batch.inputs
    return replace(batch, inputs=inputs, targets=inputs if same else targets, seeds=batch.seeds[k : k + 1], drawn=drawn)


@torch.no_grad()
def evaluation_difference(machine: Members, training: Training, batch: Samples) -> str:
    """Return the difference in an evaluation, which has no dropout."""
    objective, batch = recipe.objective(training), replace(batch, learned=False)
    actual = machine.grade(objective, batch)
    expected = objective(machine.module, batch)
    if difference := count_difference(actual, expected):
        return f"in an evaluation {difference}"
    distance, bound = (actual.loss.double() - expected.loss).abs(), EVALUATION * expected.loss.abs().double()
    bad = ~(distance <= bound) & expected.loss.isfinite()
    if not bad.any():
        return ""
    return f"the loss of an evaluation is {float(distance[bad].max()):.1g} away from that of autograd"


def step_difference(engine: Machined, machine: Members, plain: Members, loss: Tensor) -> str:
    """Return the difference after two steps of the optimiser along the machine's gradients.

    A member whose gradient is too large for a step is skipped, since it ends with any engine.
    """
    machine.step_count = plain.step_count = 0
    gradients = machine.grads.clone()
    for step in STEPS:
        before = plain.weights.clone()
        for members in (machine, plain):
            members.grads.copy_(gradients)
        engine.descend(machine)
        plain.update(loss)
        machine.step_count = plain.step_count
        moved = (plain.weights - before).norm(dim=1)
        of_weights = LEAST * moved + 4 * LAST_BIT * before.norm(dim=1)
        bounds = [of_weights, *(LEAST * slot.norm(dim=1) for slot in plain.slots)]
        pairs = zip((machine.weights, *machine.slots), (plain.weights, *plain.slots), bounds)
        ended = plain.status != RUNNING
        if not all(
            (ended | ~reference.isfinite().all(1) | (difference_norm(value, reference.double()) <= bound)).all()
            for value, reference, bound in pairs
        ):
            return f"weights or slots differ after step {step + 1} of the optimiser {type(plain.optimizer).__name__}"
    return ""


def count_difference(actual: Graded, expected: Graded) -> str:
    """Return the difference between counts. Numbers of targets must be equal. Sums of metrics may differ a little, because of ties."""
    counts = {"the loss": actual.asked, **actual.asked_of}
    for name, count in {"the loss": expected.asked, **expected.asked_of}.items():
        if not torch.equal(counts[name], count):
            return f"{counts[name].tolist()} targets of {name} are counted, where autograd counts {count.tolist()}"
    for name, wanted_sum in expected.sums.items():
        distance = (actual.sums[name].double() - wanted_sum.double()).abs()
        if (distance > 2 + 0.02 * expected.asked).any():
            return f"{name} sums to {actual.sums[name].tolist()}, by autograd to {wanted_sum.tolist()}"
    return ""


def result_difference(
    actual: Result, expected: Result, exact: Result, arguments: tuple[Members, Training, Samples, int]
) -> str:
    """Return text about a loss or gradient that is too far from float64, or an empty text."""
    for name, pick in (("loss", lambda result: result[0].loss.unsqueeze(1)), ("gradient", lambda result: result[1])):
        truth = pick(exact).double()
        distance, plain_distance = (difference_norm(pick(result), truth) for result in (actual, expected))
        bound = torch.maximum(FACTOR * plain_distance, LEAST * truth.norm(dim=1))
        if not (distance <= bound).all():
            rounded = [difference_norm(pick(result), truth) for result in rounded_steps(*arguments)]
            bound = torch.maximum(bound, FACTOR * torch.stack(rounded).amax(0))
        # a value that is not finite ends the member with any engine
        bad = ~(distance <= bound) & truth.isfinite().all(1)
        if bad.any():
            k = int(bad.nonzero()[0])
            return f"the {name} is {float(distance[k] / truth[k].norm()):.1g} of its size away from that of autograd"
    return ""


def difference_norm(value: Tensor, truth: Tensor) -> Tensor:
    """Return the distance of each member's row from the true one (K,)."""
    return (value.double() - truth).norm(dim=1)


def is_mostly_rounding(exact: Result, arguments: tuple[Members, Training, Samples, int]) -> bool:
    """Return whether last bits of the weights change a member's gradient by an eighth of its size or more."""
    truth = exact[1]
    distance = torch.stack([difference_norm(result[1], truth) for result in rounded_steps(*arguments)]).amax(0)
    return bool((~(FACTOR * distance <= truth.norm(dim=1))).any())


def rounded_steps(plain: Members, training: Training, batch: Samples, step: int) -> Iterator[Result]:
    """Yield steps by autograd whose weights are changed by up to a last bit."""
    weights = plain.weights.detach().clone()
    for k in range(TIMES):
        drawn = stream(k, "rounding").uniform(-1, 1, tuple(weights.shape))
        plain.weights.copy_(weights * (1 + 2 * LAST_BIT * torch.from_numpy(drawn).to(weights.device)))
        yield by_autograd(plain, training, batch, step)
    plain.weights.copy_(weights)
