"""Compare the results of a stack with those of one member or sample alone, and with those beside numbers that are large.

In float64, results computed in two ways differ by about 1e-16 of the largest entry, since products of stacks are summed in another order
than single ones; AGREE allows ten thousand times more for longer sums. Mixing members or samples changes results by much more than that.
What all members have in common may cancel, as in `(logits - logits.amax()).exp()`, until one of them diverges.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rankfall.trial.candidate import Candidate
from rankfall.trial.setting import MEMBERS, SAMPLES

AGREE = 1e-12  # difference of the same result computed in two ways, as a share of its largest entry
LARGE = 1e4  # times as large as usual: a neighbour that diverges


@dataclass(frozen=True)
class Axis:
    """An axis along which results must be independent."""

    number: int
    length: int
    many: str
    one: str
    place: str


MEMBER = Axis(0, MEMBERS, "the members of a stack", "member", "the first axis, K")
SAMPLE = Axis(1, SAMPLES, "samples", "sample", "the second axis, B")


def difference(got: Sequence[Tensor], wanted: Sequence[Tensor]) -> float:
    """Return the largest difference of two entries as a share of the largest entry; equal infinities do not differ."""
    worst = 0.0
    for one, other in zip(got, wanted):
        apart = torch.where(one == other, 0.0, (one - other).abs()).nan_to_num(nan=torch.inf).max()
        largest = torch.where(other.isfinite(), other.abs(), 0.0).max().clamp_min(torch.finfo(other.dtype).tiny)
        worst = max(worst, float(apart / largest))
    return worst


def check_independent(
    candidate: Candidate,
    axis: Axis,
    whole: Sequence[Tensor],
    compute: Callable[[Axis, bool], Sequence[Tensor]],
    told: str,
) -> None:
    """Raise `Refused` if results depend on neighbours along an axis.

    `whole`: results of all (K, B, ...); `compute(axis, alone)`: results of the last member or sample alone, or those of all where the
    first one has numbers that are LARGE times as large; `told`: the inputs in words.
    """
    last = axis.length - 1
    if (off := difference(compute(axis, True), [value.narrow(axis.number, last, 1) for value in whole])) > AGREE:
        raise candidate.refusal(
            f"mixes {axis.many}: {axis.one} {last} of {axis.length} differs by {off:.1e} from what it is alone, given {told}",
            f"no operation may run over {axis.place}, or depend on its length",
        )
    got, kept = ([value.narrow(axis.number, 1, last) for value in values] for values in (compute(axis, False), whole))
    if difference(got, kept) > AGREE:
        raise candidate.refusal(
            f"mixes {axis.many}: where {axis.one} 0 has numbers {LARGE:,.0f} times as large, others change, given {told}",
            f"no operation, such as a maximum, may run over {axis.place}",
        )
