"""Number of distinct rows among n, as far as float64 can tell.

Two rows are equal if no entry differs by more than `tolerance` times the largest entry of all rows. Rows joined by a chain of equal ones
count as one. Equal rows differ by rounding (1e-16 to 1e-14 of the largest), distinct rows of random networks by 1e-10 and more, so that
the count hardly depends on the tolerance. Both sides are reported: the widest difference within a group, and the narrowest between
groups.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rankfall.rank.powers import measurable, unit

TOLERANCE = 1e-12


@dataclass(frozen=True)
class Distinct:
    """Distinct rows of each of K sets; differences are relative to the set's largest entry."""

    rows: Tensor  # (K,) distinct rows; 0 where an entry is not finite, or all are zero or beyond the range of float64
    widest: Tensor  # (K,) the largest difference between rows that count as equal
    narrowest: Tensor  # (K,) the smallest difference between rows that count as distinct; inf if there are none
    groups: Tensor  # (K, n) the first row of each row's group


def distinct(rows: Tensor, tolerance: float = TOLERANCE) -> Distinct:
    """Find the distinct rows of (K, n, D) in float64."""
    finite = measurable(rows)  # (K,)
    rows = unit(torch.where(finite.view(-1, 1, 1), rows, 0.0))
    size = torch.where(finite, rows.abs().amax((1, 2)), 1.0)  # (K,)
    apart = torch.cdist(rows, rows, p=torch.inf) / size.view(-1, 1, 1)  # (K, n, n)
    groups = first_equal_places(apart <= tolerance)
    same = groups.unsqueeze(2) == groups.unsqueeze(1)  # (K, n, n)
    places = torch.arange(rows.shape[1], device=rows.device)
    return Distinct(
        torch.where(finite, (groups == places).sum(1), 0),
        torch.where(same, apart, 0.0).amax((1, 2)),
        torch.where(same, torch.inf, apart).amin((1, 2)),
        groups,
    )


def first_equal_places(equal: Tensor) -> Tensor:
    """Return the first position (K, n) of each position's group, where pairs (K, n, n) say which are equal."""
    members, n = equal.shape[:2]
    first = torch.arange(n, device=equal.device).expand(members, -1)
    while True:
        after = torch.where(equal, first.unsqueeze(1), n).amin(2)  # the lowest label among equals
        if torch.equal(after, first):
            return first
        first = after
