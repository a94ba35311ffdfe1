"""What an objective is given when it is tried, and what must come back: numbers of each member, its inputs as they were, and sums that are
sums.

A metric's mean is its sum over all batches by the number of targets. So a sum is at most that number, and sums and numbers of the halves
of a batch add up to those of the whole, which a mean does not, and so do losses times the number of targets in an evaluation. What is
drawn for each batch anew is compared with no other batch.
"""

import functools
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from rankfall.nets.dropout import Dropout, no_dropout
from rankfall.streams import stream
from rankfall.train.history import count_of, is_count, sums_of
from rankfall.train.objectives._base import Graded, Samples
from rankfall.trial.candidate import Candidate
from rankfall.trial.extremes import AGREE, difference
from rankfall.trial.setting import MEMBERS

SYMBOLS, LENGTH, BATCH = 5, 6, 4  # of the batch
FIRST = ("train", 0)  # its place
NO_SUM = (
    "`asked` counts targets and sums are over them, so that both add up over samples: nothing but the loss is a mean"
)
NO_MEAN = (
    "`loss` is a mean over the targets that `asked` counts, or an evaluation would depend on how a split is cut into batches: what "
    "samples of a batch are to each other belongs into a loss where `batch.learned` alone"
)


class Small(nn.Module):
    """A network of each member's own in a few lines: what is put in, and one linear map."""

    def __init__(self, members: Sequence[int], tokens: bool, size_in: int, size_out: int, factor: float) -> None:
        super().__init__()
        self.tokens, self.size_in = tokens, size_in
        drawn = [
            torch.from_numpy(stream(member, "trial", "head").normal(size=(size_in, size_out))) for member in members
        ]
        drawn[0] = drawn[0] * factor
        self.weight = nn.Parameter(torch.stack(drawn))  # (K, D, C)

    def features(self, inputs: Tensor, drop: Dropout = no_dropout) -> Tensor:
        return drop(one_hot(inputs, self.size_in).double() if self.tokens else inputs.double(), "features")

    def head(self, x: Tensor) -> Tensor:
        return torch.einsum("kbtd,kdc->kbtc", x, self.weight)

    def forward(self, inputs: Tensor, drop: Dropout = no_dropout) -> Tensor:
        return self.head(self.features(inputs, drop))


def targets_of(candidate: Candidate) -> str:
    accepts = candidate.facts.get("ACCEPTS", "classes")
    return accepts if isinstance(accepts, str) else next(iter(accepts), "classes")


@functools.cache
def draw_member(targets: str, member: int) -> tuple[Tensor, Tensor]:
    """A member's inputs and targets."""
    rng, shape = stream(member, "trial", "batch"), (BATCH, LENGTH)
    x = torch.from_numpy(
        rng.integers(SYMBOLS, size=shape) if targets != "values" else rng.normal(size=(*shape, SYMBOLS))
    )
    asked = {"classes": rng.integers(-1, 3, size=shape), "values": rng.normal(size=(*shape, 3))}
    return x, x if targets == "hidden" else torch.from_numpy(asked[targets])


def samples(
    targets: str, members: Sequence[int], place: tuple[str | int, ...], learned: bool = True, part: slice = slice(None)
) -> Samples:
    inputs, wanted = (
        torch.stack([draw_member(targets, member)[which][part] for member in members]) for which in (0, 1)
    )
    return Samples(inputs, wanted, list(members), place, SYMBOLS, special=2, learned=learned)


def grade(
    candidate: Candidate,
    targets: str,
    members: Sequence[int],
    factor: float = 1.0,
) -> dict[str, Tensor]:
    """Every number (K,) that the objective gives, and the gradient of its loss; the weights of the first member are `factor` times as
    large."""
    module = Small(members, targets != "values", SYMBOLS, SYMBOLS if targets == "hidden" else 3, factor)
    found = ask(candidate, targets, module, samples(targets, members, FIRST), finite=factor == 1)
    if not found.loss.requires_grad:
        raise candidate.refusal("gives a loss without a gradient", "it must follow from the module's outputs")
    (gradient,) = torch.autograd.grad(found.loss.sum(), [module.weight])
    numbers = {"loss": found.loss, "asked": found.asked, **found.sums}
    return {name: value.detach().double() for name, value in numbers.items()} | {"the gradient": gradient}


def ask(candidate: Candidate, targets: str, module: nn.Module, batch: Samples, finite: bool = True) -> Graded:
    """What the objective makes of a batch, which it must leave as it is."""
    inputs, wanted = batch.inputs.clone(), batch.targets.clone()
    found = candidate.call(candidate.bound(), f"given a module and samples with {targets}", module, batch)
    for name, before, after in (("inputs", inputs, batch.inputs), ("targets", wanted, batch.targets)):
        if not torch.equal(before, after):
            raise candidate.refusal(f"edits `batch.{name}` in place", "work on new tensors: others are given the same")
    if not isinstance(found, Graded):
        raise candidate.refusal(
            f"returns a {type(found).__name__}", "it must return a Graded of rankfall.train.objectives"
        )
    numbers: dict[str, Tensor] = {"loss": found.loss, "asked": found.asked, **found.sums, **found.asked_of}
    for name, value in numbers.items():
        if not isinstance(value, Tensor) or value.shape != (len(batch.inputs),):
            raise candidate.refusal(f"gives no {name} for each member", "loss, asked and all sums are (K,)")
        if finite and not value.isfinite().all():
            raise candidate.refusal(f"gives {name} that is not finite", "every number must be one")
    return found


def check_sums(candidate: Candidate, targets: str) -> None:
    """Raise if a share cannot be one, or if sums over samples do not add up."""
    module = Small(range(MEMBERS), targets != "values", SYMBOLS, SYMBOLS if targets == "hidden" else 3, 1.0)

    def sums(place: int, part: slice = slice(None), learned: bool = False) -> dict[str, Tensor]:
        split = "train" if learned else "test"
        batch = samples(targets, range(MEMBERS), (split, place), learned, part)
        with torch.set_grad_enabled(learned):
            found = ask(candidate, targets, module, batch)
        there = (
            (batch.targets != -1).flatten(1).sum(1) if targets != "values" else torch.tensor(batch.targets[0].numel())
        )
        return check_shares(candidate, found, there)

    sums(0, learned=True)
    whole, elsewhere = sums(0), sums(BATCH)
    if any(not torch.equal(value, elsewhere[name]) for name, value in whole.items()):
        return  # it draws something for each batch
    first, second = sums(0, slice(0, BATCH // 2)), sums(BATCH // 2, slice(BATCH // 2, BATCH))
    for name, value in whole.items():
        if difference([first[name] + second[name]], [value]) > AGREE:
            told = "a loss, times the targets asked, of" if name == "loss" else name
            halves = f"{float(first[name][0]):g} and {float(second[name][0]):g}"
            raise candidate.refusal(
                f"gives {told} {halves} for the halves of a batch, and {float(value[0]):g} for the whole",
                NO_MEAN if name == "loss" else NO_SUM,
            )


def is_share(name: str) -> bool:
    """Whether a metric, such as `accuracy` or `test.accuracy`, is a share."""
    return name.rpartition(".")[2].startswith("accuracy")


def check_shares(candidate: Candidate, found: Graded, there: Tensor) -> dict[str, Tensor]:
    """All sums of a batch in which so many targets (K,) are."""
    sums = {name: value.detach().double() for name, value in sums_of(found).items()}
    for name, value in sums.items():
        if is_count(name) and ((value < 0) | (value > there)).any():
            raise candidate.refusal(
                f"says that {float(value.max()):g} targets are asked, {name}, of {int(there.max())}",
                "`asked` is the number of targets of each member, in all its samples",
            )
        count = sums[count_of(name, sums)]
        if is_share(name) and ((value < 0) | (value > count)).any():
            worst = int((value / count).nan_to_num().argmax())
            raise candidate.refusal(
                f"gives {name} {float(value[worst]):g} where {float(count[worst]):g} targets are asked",
                "the sum counts answers that are right, of those that `asked`, or `asked_of`, counts",
            )
    return sums
