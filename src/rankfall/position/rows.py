"""Number of distinct rows among n, as far as float64 can tell.

Two rows are equal if no entry differs by more than `tolerance` times the largest entry of all rows. Rows joined by a chain of equal ones
count as one. Equal rows differ by rounding (1e-16 to 1e-14 of the largest), distinct rows of random networks by 1e-10 and more, so that
the count hardly depends on the tolerance. Both sides are reported: the widest difference within a group, and the narrowest between
groups.

Networks at random weights show what an architecture can do. Every parameter is drawn around its start, including those that start at a
constant such as zero or one (a norm's gain, URPE's factors, buckets of a bias). Weights keep states and scores of order one. The draw
depends on the parameter's name, shape and role only, so that architectures share the parameters that they have in common.
"""

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from rankfall.design import Architecture
from rankfall.nets.network import Network, Shape, build
from rankfall.nets.primitives import Initial
from rankfall.random_streams import stream
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
    gaps = torch.cdist(rows, rows, p=torch.inf) / size.view(-1, 1, 1)  # (K, n, n)
    groups = first_equal_places(gaps <= tolerance)
    same = groups.unsqueeze(2) == groups.unsqueeze(1)  # (K, n, n)
    places = torch.arange(rows.shape[1], device=rows.device)
    return Distinct(
        torch.where(finite, (groups == places).sum(1), 0),
        torch.where(same, gaps, 0.0).amax((1, 2)),
        torch.where(same, torch.inf, gaps).amin((1, 2)),
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


SPREAD = 0.5  # standard deviation of biases, positions and parameters that start at a constant


def random_networks(design: Architecture, shape: Shape, draws: int) -> Network:
    """Build one network per draw, in float64.

    Networks share the tensors that they have in common, so these must not be written to.
    """
    network = build(design, shape, draws, torch.float64)
    for name, value in network.named_parameters():
        start: Initial = value.initial  # type: ignore[attr-defined]
        value.data = draw_initial(name, start, tuple(value.shape[1:]), draws)
    return network


@lru_cache(maxsize=1024)
def draw_initial(name: str, start: Initial, shape: tuple[int, ...], draws: int) -> Tensor:
    """Draw a parameter for `draws` networks, with shape (K, *shape)."""
    normal = torch.stack([torch.from_numpy(stream(k, "probe", name).normal(size=shape)) for k in range(draws)])
    if start.kind == "constant":
        return start.constant + SPREAD * normal
    if start.kind == "bias" or start.role == "position":
        return SPREAD * normal
    return normal * (1.0 if start.role == "embedding" else start.fan_in**-0.5)


def last_rows(network: Network, tokens: int) -> Tensor:
    """Return the rows (K, n, D) that the head receives for n equal tokens."""
    members = len(next(network.parameters()))
    equal = torch.zeros(members, 1, tokens, dtype=torch.int64)
    with torch.no_grad():
        return network.features(equal)[:, 0]
