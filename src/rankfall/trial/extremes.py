"""When two results count as the same, and the numbers of a neighbour that diverges."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

AGREE = 1e-12  # difference of the same result computed in two ways, as a share of its largest entry
LARGE = 1e4  # times as large as usual: a neighbour that diverges
TOLD = f"{LARGE:,.0f} times as large"


def difference(got: Sequence[Tensor], wanted: Sequence[Tensor]) -> float:
    """The largest difference of two entries as a share of the largest entry; equal infinities do not differ."""
    worst = 0.0
    for one, other in zip(got, wanted):
        apart = torch.where(one == other, 0.0, (one - other).abs()).nan_to_num(nan=torch.inf).max()
        largest = torch.where(other.isfinite(), other.abs(), 0.0).max().clamp_min(torch.finfo(other.dtype).tiny)
        worst = max(worst, float(apart / largest))
    return worst


def with_extremes(inputs: Sequence[Tensor], factors: Sequence[float]) -> list[Tensor]:
    """Return copies (K, B, ...) whose first samples of member 0 are so many times as large; symbols stay what they are."""
    copies = [value.clone() for value in inputs]
    for value in filter(torch.is_floating_point, copies):
        for sample, factor in enumerate(factors):
            value[0, sample] *= factor
    return copies


@contextmanager
def large_parameters(parameters: Mapping[str, Tensor]) -> Iterator[None]:
    """Make the parameters (K, ...) of member 0 large within."""
    before = {name: value.data[0].clone() for name, value in parameters.items()}
    try:
        for value in parameters.values():
            value.data[0] *= LARGE
        yield
    finally:
        for name, value in parameters.items():
            value.data[0] = before[name]
