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
from rankfall.train.machine.autograd import Result, by_autograd, initial, to_double
from rankfall.train.machine.engine import NO_CODE, Machined
from rankfall.train.machine.exact_zeros import find_remainder
from rankfall.train.members import RUNNING, Members
from rankfall.train.objectives._base import Graded, Samples

FACTOR = 8.0
LEAST = 2e-5  # relative
EVALUATION = 1e-3  # relative distance of a loss: rounding stays below it even where it is amplified, errors exceed it
TIMES = 8  # steps with random rounding of the weights
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
    """Return text with the difference and a remedy, or an empty text if the engines agree. The networks are temporary. `note` is called if
    the passes cannot be compared."""
    for number, batch in enumerate(batches):
        machine, plain, double = (
            initial(architecture, shape, replace(training, dtype=dtype), batch)
            for dtype in (training.dtype, training.dtype, "float64")
        )
        machine.engine = engine = machined(machine, architecture, shape, training, code)
        double.weights.copy_(plain.weights)
        for step in STEPS if training.dropout else STEPS[:1]:
            machine.step_count = step
            again = plain, training, batch, step
            wanted = by_autograd(*again)  # first, so that an error of a component is not blamed on the machine
            exact = by_autograd(double, training, to_double(batch), step)
            found = engine.passes(machine, batch), machine.grads
            what = count_difference(found[0], wanted[0]) or far(found, wanted, exact, again)
            if what and is_mostly_rounding(exact, again):
                note(NOT_COMPARED)
                break
            if what:
                return f"{DIFFERS}{what} (batch of {batch.inputs.shape[1]}, step {step}); {REMEDY}"
            first = number == step == 0
            if first and (left := find_remainder(plain, double, training, batch, found, wanted, exact)):
                return f"the gradient of {left.parameter} is 0 by autograd and {left.value:.1g} by the machine: {SYMMETRIC}"
        else:
            what = evaluation_difference(machine, training, batch)
            if what and not is_mostly_rounding(exact, again):
                return f"{DIFFERS}{what}; {REMEDY}"
        if what := step_difference(engine, machine, plain, wanted[0].loss):
            return f"{DIFFERS}{what}; {REMEDY}"
    return ""


def later_difference(engine: Machined, members: Members, batch: Samples, k: int) -> str:
    """Return the difference in the step that member k is about to take, with a remedy, or an empty text. Nothing is trained."""
    architecture, shape, *_ = engine.design
    training, step, one = engine.training, members.step_count, pick_member(batch, k)
    plain, double = (
        initial(architecture, shape, replace(training, dtype=dtype), one) for dtype in (training.dtype, "float64")
    )
    plain.weights.copy_(members.weights[k : k + 1])
    double.weights.copy_(plain.weights)
    again = plain, training, one, step
    wanted, exact = by_autograd(*again), by_autograd(double, training, to_double(one), step)
    if not (wanted[1].isfinite().all() and wanted[0].loss.isfinite().all()):  # the member ends with any engine
        return ""
    graded = engine.passes(members, batch)
    found = replace(graded, loss=graded.loss[k : k + 1]), members.grads[k : k + 1].clone()
    what = far(found, wanted, exact, again)
    return f"{DIFFERS}{what}; {REMEDY}" if what and not is_mostly_rounding(exact, again) else ""


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
    found = machine.grade(objective, batch)
    wanted = objective(machine.module, batch)
    if what := count_difference(found, wanted):
        return f"in an evaluation {what}"
    away, bound = (found.loss.double() - wanted.loss).abs(), EVALUATION * wanted.loss.abs().double()
    bad = ~(away <= bound) & wanted.loss.isfinite()
    return f"the loss of an evaluation is {float(away[bad].max()):.1g} away from that of autograd" if bad.any() else ""


def step_difference(engine: Machined, machine: Members, plain: Members, loss: Tensor) -> str:
    """Return the difference after two steps of the optimiser along the machine's gradients. A member whose gradient is too large for a step
    is skipped, since it ends with any engine."""
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
            (ended | ~other.isfinite().all(1) | (difference_norm(one, other.double()) <= bound)).all()
            for one, other, bound in pairs
        ):
            return f"weights or slots differ after step {step + 1} of the optimiser {type(plain.optimizer).__name__}"
    return ""


def count_difference(found: Graded, wanted: Graded) -> str:
    """Return the difference between counts. Numbers of targets must be equal. Sums of metrics may differ a little, because of ties."""
    if not torch.equal(found.asked, wanted.asked):
        return f"{found.asked.tolist()} targets are counted, where autograd counts {wanted.asked.tolist()}"
    if set(found.sums) != set(wanted.sums) or set(found.asked_of) != set(wanted.asked_of):
        return f"metrics {sorted(found.sums)}, where the objective has {sorted(wanted.sums)}"
    for name, asked in wanted.asked_of.items():
        if not torch.equal(found.asked_of[name], asked):
            return f"{found.asked_of[name].tolist()} targets of {name} are counted, by autograd {asked.tolist()}"
    for name, wanted_sum in wanted.sums.items():
        away = (found.sums[name].double() - wanted_sum.double()).abs()
        if (away > 2 + 0.02 * wanted.asked).any():
            return f"{name} sums to {found.sums[name].tolist()}, by autograd to {wanted_sum.tolist()}"
    return ""


def far(found: Result, wanted: Result, exact: Result, again: tuple[Members, Training, Samples, int]) -> str:
    """Return text about a loss or gradient that is too far from float64, or an empty text."""
    for name, pick in (("loss", lambda one: one[0].loss.unsqueeze(1)), ("gradient", lambda one: one[1])):
        truth = pick(exact).double()
        away, torchs = (difference_norm(pick(one), truth) for one in (found, wanted))
        bound = torch.maximum(FACTOR * torchs, LEAST * truth.norm(dim=1))
        if not (away <= bound).all():
            rounded = torch.stack([difference_norm(pick(one), truth) for one in rounded_steps(*again)]).amax(0)
            bound = torch.maximum(bound, FACTOR * rounded)
        bad = ~(away <= bound) & truth.isfinite().all(1)  # a value that is not finite ends the member with any engine
        if bad.any():
            k = int(bad.nonzero()[0])
            return f"the {name} is {float(away[k] / truth[k].norm()):.1g} of its size away from that of autograd"
    return ""


def difference_norm(one: Tensor, truth: Tensor) -> Tensor:
    return (one.double() - truth).norm(dim=1)


def is_mostly_rounding(exact: Result, again: tuple[Members, Training, Samples, int]) -> bool:
    """Return whether last bits of the weights change a member's gradient by an eighth of its size or more."""
    truth = exact[1]
    away = torch.stack([difference_norm(one[1], truth) for one in rounded_steps(*again)]).amax(0)
    return bool((~(FACTOR * away <= truth.norm(dim=1))).any())


def rounded_steps(plain: Members, training: Training, batch: Samples, step: int) -> Iterator[Result]:
    weights = plain.weights.detach().clone()
    for k in range(TIMES):
        drawn = stream(k, "rounding").uniform(-1, 1, tuple(weights.shape))
        plain.weights.copy_(weights * (1 + 2 * LAST_BIT * torch.from_numpy(drawn).to(weights.device)))
        yield by_autograd(plain, training, batch, step)
    plain.weights.copy_(weights)
