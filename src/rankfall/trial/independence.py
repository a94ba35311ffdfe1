"""Compare the results of one member or sample alone with those beside another one whose numbers are large.

In float64, results computed in two ways differ by about 1e-16 of the largest entry, since products of stacks are summed in another order
than single ones; AGREE allows ten thousand times more for longer sums. Mixing members or samples changes results by much more than that.
The neighbour's numbers are large because what all have in common may cancel, as in `(logits - logits.amax()).exp()`, until one diverges.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from rankfall.trial.candidate import Candidate
from rankfall.trial.setting import MEMBERS, SAMPLES

AGREE = 1e-12  # difference of the same result computed in two ways, as a share of its largest entry
LARGE = 1e4  # times as large as usual: a neighbour that diverges


class Axis(NamedTuple):
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
    candidate: Candidate, axis: Axis, compute: Callable[[Axis, bool], Sequence[Tensor]], told: str
) -> None:
    """Raise `Refused` if results depend on neighbours along an axis. `compute(axis, alone)` returns the results (K, B, ...) of the last
    member or sample alone, or those of all where the first one has numbers that are LARGE times as large. `told`: the inputs in words."""
    last = axis.length - 1
    beside = [value.narrow(axis.number, last, 1) for value in compute(axis, False)]
    if (off := difference(beside, compute(axis, True))) > AGREE:
        raise candidate.refusal(
            f"mixes {axis.many}: {axis.one} {last} of {axis.length} differs by {off:.1e} from what it is alone, given {told}, where "
            f"{axis.one} 0 has numbers {LARGE:,.0f} times as large",
            f"no operation, such as a mean or a maximum, may run over {axis.place}, or depend on its length",
        )
