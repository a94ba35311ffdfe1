"""Compare the results of a member or sample alone with its results beside a neighbour whose numbers are large.

In float64, results computed in two ways differ by about 1e-16 of the largest entry, since products of stacks are summed in another order
than single ones; AGREE allows ten thousand times more for longer sums. Mixing members or samples changes results by much more than that.
The neighbour's numbers are large because a shared maximum cancels, as in `(logits - logits.amax()).exp()`, until a member diverges.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from rankfall.trial.candidate import MEMBERS, SAMPLES, Candidate

AGREE = 1e-12  # difference of the same result computed in two ways, as a share of its largest entry
LARGE = 1e4  # factor of the neighbour's numbers, which stand for a member that diverges


class Axis(NamedTuple):
    """An axis along which results must be independent."""

    number: int
    length: int
    plural: str
    singular: str
    place: str


MEMBER = Axis(0, MEMBERS, "the members of a stack", "member", "the first axis, K")
SAMPLE = Axis(1, SAMPLES, "samples", "sample", "the second axis, B")


def difference(results: Sequence[Tensor], expected: Sequence[Tensor]) -> float:
    """Return the largest distance between entries as a share of the largest expected entry; equal infinities do not differ."""
    worst = 0.0
    for result, reference in zip(results, expected):
        distance = torch.where(result == reference, 0.0, (result - reference).abs()).nan_to_num(nan=torch.inf).max()
        largest = (
            torch.where(reference.isfinite(), reference.abs(), 0.0).max().clamp_min(torch.finfo(reference.dtype).tiny)
        )
        worst = max(worst, float(distance / largest))
    return worst


def check_independent(
    candidate: Candidate, axis: Axis, compute: Callable[[Axis, bool], Sequence[Tensor]], inputs: str
) -> None:
    """Raise `Refused` if results depend on neighbours along an axis.

    `compute(axis, alone)` returns the results (K, B, ...) of the last member or sample alone, or the results of all, where the numbers of
    the first are LARGE times as large. `inputs` describes the inputs in words."""
    last = axis.length - 1
    beside = [value.narrow(axis.number, last, 1) for value in compute(axis, False)]
    if (off := difference(beside, compute(axis, True))) > AGREE:
        raise candidate.refusal(
            f"mixes {axis.plural}: {axis.singular} {last} of {axis.length} differs by {off:.1e} from what it is alone, given {inputs}, "
            f"where {axis.singular} 0 has numbers {LARGE:,.0f} times as large",
            f"no operation, such as a mean or a maximum, may run over {axis.place}, or depend on its length",
        )
