"""Try objectives, optimisers and schedules.

An objective returns numbers of each member, leaves its inputs unchanged, and its sums add up over samples. A metric's mean is its sum over
all batches divided by the number of targets. So the sums and the numbers of targets of the two halves of a batch must add up to those of
the whole, and so must losses times the number of targets in an evaluation. Means do not add up. An objective that draws anew for each batch
is exempt, since its batches cannot be compared.

Steps of an optimiser for all members at once are compared with steps of a member alone and with steps from checkpoints.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from rankfall.nets.primitives import Dropout, no_dropout
from rankfall.random_streams import stream
from rankfall.train.loop import is_count, sums_of
from rankfall.train.members import ParameterEntry
from rankfall.train.objectives._base import Graded, Samples
from rankfall.trial.candidate import MEMBERS, Candidate, Surroundings
from rankfall.trial.maps import AGREE, LARGE, MEMBER, check_independent, difference

SYMBOLS, LENGTH, BATCH, ANSWERS = 5, 6, 4, 3  # sizes of a batch: features or symbols, tokens, samples, answers
ALL = range(MEMBERS)
NO_SUM = (
    "`asked` counts targets and sums are over them, so that both add up over samples: nothing but the loss is a mean"
)
NO_MEAN = (
    "`loss` is a mean over the targets that `asked` counts, or an evaluation would depend on how a split is cut into batches: what "
    "samples of a batch are to each other belongs into a loss where `batch.learned` alone"
)


def objective(candidate: Candidate, setting: Surroundings) -> None:
    """Try an objective on the first kind of targets in its ACCEPTS, whatever the targets of the cell are."""
    accepts = candidate.facts.get("ACCEPTS", "classes")
    targets = accepts if isinstance(accepts, str) else next(iter(accepts), "classes")
    whole, again = (grade(candidate, targets, ALL) for _ in range(2))
    if not all(map(torch.equal, whole, again)):
        fault = "gives another result when called again"
        raise candidate.refusal(fault, "draw by the batch's seeds and place alone")

    beside, alone = grade(candidate, targets, ALL, LARGE), grade(candidate, targets, ALL[-1:])
    check_independent(candidate, MEMBER, beside, alone, f"a module and samples with {targets}")
    check_sums(candidate, targets)


class OneMap(nn.Module):
    """A network of one linear map for each member. The weights of the first member are `factor` times as large."""

    def __init__(self, members: Sequence[int], targets: str, factor: float = 1.0) -> None:
        super().__init__()
        self.tokens, outputs = targets != "values", SYMBOLS if targets == "hidden" else ANSWERS
        weights = [stream(member, "trial", "head").normal(size=(SYMBOLS, outputs)) for member in members]
        weights[0] *= factor
        self.weight = nn.Parameter(torch.stack([torch.from_numpy(values) for values in weights]))  # (K, D, C)

    def features(self, inputs: Tensor, drop: Dropout = no_dropout) -> Tensor:
        return drop(one_hot(inputs, SYMBOLS).double() if self.tokens else inputs.double(), "features")

    def head(self, x: Tensor) -> Tensor:
        return torch.einsum("kbtd,kdc->kbtc", x, self.weight)

    def forward(self, inputs: Tensor, drop: Dropout = no_dropout) -> Tensor:
        return self.head(self.features(inputs, drop))


def draw_samples(
    targets: str, members: Sequence[int], place: tuple[str | int, ...], learned: bool = True, part: slice = slice(None)
) -> Samples:
    """Return a part of a batch: each member draws its own inputs and targets."""
    inputs, target_values = [], []
    for member in members:
        rng, shape = stream(member, "trial", "batch"), (BATCH, LENGTH)
        if targets == "values":
            x, y = (torch.from_numpy(rng.normal(size=(*shape, size))) for size in (SYMBOLS, ANSWERS))
        else:
            ends = ((0, SYMBOLS), (-1, ANSWERS))
            x, y = (torch.from_numpy(rng.integers(low, high, size=shape)) for low, high in ends)
        inputs.append(x[part])
        target_values.append((x if targets == "hidden" else y)[part])
    return Samples(
        torch.stack(inputs), torch.stack(target_values), list(members), place, SYMBOLS, special=2, learned=learned
    )


def grade(candidate: Candidate, targets: str, members: Sequence[int], factor: float = 1.0) -> list[Tensor]:
    """Return every number (K,) that the objective gives, and the gradient of its loss (K, D, C)."""
    module = OneMap(members, targets, factor)
    graded = ask(candidate, targets, module, draw_samples(targets, members, ("train", 0)), finite=factor == 1)
    if not graded.loss.requires_grad:
        raise candidate.refusal("gives a loss without a gradient", "it must follow from the module's outputs")
    (gradient,) = torch.autograd.grad(graded.loss.sum(), [module.weight])
    return [value.detach().double() for value in (graded.loss, graded.asked, *graded.sums.values(), gradient)]


def ask(candidate: Candidate, targets: str, module: nn.Module, batch: Samples, finite: bool = True) -> Graded:
    """Return the objective's result for a batch; raise `Refused` if it edits the batch or returns wrong numbers."""
    inputs_before, targets_before = batch.inputs.clone(), batch.targets.clone()
    when = f"given a module and samples with {targets}"
    graded: Graded = candidate.call(candidate.bind_options(), when, module, batch)
    for name, before, after in (("inputs", inputs_before, batch.inputs), ("targets", targets_before, batch.targets)):
        if not torch.equal(before, after):
            raise candidate.refusal(f"edits `batch.{name}` in place", "work on new tensors: others are given the same")
    results: dict[str, Tensor] = {"loss": graded.loss, "asked": graded.asked, **graded.sums, **graded.asked_of}
    for name, value in results.items():
        if not isinstance(value, Tensor) or value.shape != (len(batch.inputs),):
            raise candidate.refusal(f"gives no {name} for each member", "loss, asked and all sums are (K,)")
        if finite and not value.isfinite().all():
            raise candidate.refusal(f"gives {name} that is not finite", "every number must be one")
    return graded


def check_sums(candidate: Candidate, targets: str) -> None:
    """Raise `Refused` if sums over the samples of an evaluation do not add up."""
    module = OneMap(ALL, targets)

    def sums(start: int, part: slice = slice(None)) -> dict[str, Tensor]:
        with torch.no_grad():
            graded = ask(candidate, targets, module, draw_samples(targets, ALL, ("test", start), False, part))
        totals = {name: value.double() for name, value in sums_of(graded).items()}
        return dict(sorted(totals.items(), key=lambda item: not is_count(item[0])))  # others may follow from counts

    whole, elsewhere = sums(0), sums(BATCH)
    if any(not torch.equal(value, elsewhere[name]) for name, value in whole.items()):
        return  # it draws something for each batch
    first, second = sums(0, slice(0, BATCH // 2)), sums(BATCH // 2, slice(BATCH // 2, BATCH))
    for name, value in whole.items():
        if difference([first[name] + second[name]], [value]) > AGREE:
            label = "a loss, times the targets asked, of" if name == "loss" else name
            halves = f"{float(first[name][0]):g} and {float(second[name][0]):g}"
            raise candidate.refusal(
                f"gives {label} {halves} for the halves of a batch, and {float(value[0]):g} for the whole",
                NO_MEAN if name == "loss" else NO_SUM,
            )


ENTRIES = (ParameterEntry("map.weight", "mlp", "weight", (2, 3), 0), ParameterEntry("map.bias", "mlp", "bias", (1,), 6))
PARAMETERS = 7  # numbers of a member in ENTRIES
STEPS = 3  # enough for slots to matter
RATES, DECAYS = (0.1, 0.0, 0.01), (0.1, 0.1, 0.0)  # learning rate and weight decay of each member
STOPPED = 1  # a member whose learning rate and gradients are zero


def optimizer(candidate: Candidate, setting: Surroundings) -> None:
    """Raise `Refused` unless an optimiser resumes, moves weights, leaves stopped members alone and treats members independently."""
    start, whole = normal_numbers("weights", 0), take_steps(candidate, ALL)
    if difference([take_steps(candidate, ALL, resumed=True)], [whole]) > AGREE:
        raise candidate.refusal(
            "goes on elsewhere when it is made again and given the same weights and slots",
            "keep what lasts in `slots`, so that training can go on from a checkpoint, draw nothing, and leave lr and decay as they are",
        )
    if torch.equal(whole[0], start[0]):
        raise candidate.refusal("leaves the weights as they are", "`step` changes `weights` in place")
    if not torch.equal(whole[STOPPED], start[STOPPED]):
        raise candidate.refusal(
            "moves a member whose learning rate and gradient are zero, which has stopped",
            "every change must be in proportion to `lr`",
        )
    beside, alone = take_steps(candidate, ALL, LARGE), take_steps(candidate, ALL[-1:])
    check_independent(candidate, MEMBER, [beside], [alone], "gradients")


def make_optimizer(candidate: Candidate) -> Any:
    """Return the optimiser for ENTRIES as `Members` makes it."""
    instance = candidate.bind_options()
    return candidate.call(instance.of, "given the entries of a row", ENTRIES) if hasattr(instance, "of") else instance


def normal_numbers(name: str, step: int) -> Tensor:
    """Return normal numbers (K, P)."""
    return torch.from_numpy(stream(step, "trial", name).normal(size=(MEMBERS, PARAMETERS)))


def take_steps(candidate: Candidate, members: Sequence[int], factor: float = 1.0, resumed: bool = False) -> Tensor:
    """Return the weights (K, P) of these members after STEPS steps with weight decay.

    The gradients of the first member are `factor` times as large. If `resumed`, each step has a new optimiser, as after a checkpoint."""
    rows = list(members)
    weights, slots = normal_numbers("weights", 0)[rows], None
    for step in range(1, STEPS + 1):
        if resumed or step == 1:
            instance = make_optimizer(candidate)
            # (K, 1)
            lr, decay = (torch.tensor(r, dtype=torch.float64).unsqueeze(1)[rows] for r in (RATES, DECAYS))
            slots = slots or tuple(torch.zeros_like(weights) for _ in range(instance.slots))
        grads = normal_numbers("gradients", step)
        grads[STOPPED] = 0.0
        grads = grads[rows]
        grads[0] *= factor
        when = "given weights, gradients, slots, lr, decay, step and scratch"
        with torch.no_grad():
            candidate.call(instance.step, when, weights, grads, slots, lr, decay, step, torch.empty_like(weights))
    return weights


def schedule(candidate: Candidate, setting: Surroundings) -> None:
    """Raise `Refused` if a schedule gives two factors for an epoch."""
    function, epochs = candidate.bind_options(), setting.epochs
    for epoch in sorted({0, 1, epochs // 2, epochs - 1} & set(range(epochs))):
        when = f"given epoch {epoch} of {epochs}"
        first, again = (candidate.call(function, when, epoch, epochs) for _ in range(2))
        if first != again:
            raise candidate.refusal(f"gives another result when called again, {when}", "keep nothing between calls")
