"""Distance of a matrix of token vectors from having equal rows, as pure functions of tensors (..., T, D).

The residual is res(X) = X - 1 x^T. Arguments choose x and the norm of the rest:

* centre "mean": x is the mean over tokens, whatever the norm (as in the published code; a relative value may exceed 1);
* centre "best": x minimises the chosen norm. frobenius: the mean. l1: the median of every column, because the norm is a
  maximum over columns and the columns do not interact. linf: the centre of the smallest l1 ball that holds all rows, a
  convex problem solved to a certified gap (`row_centre`). composite: not convex; `composite_centre` describes what is
  computed and how it is bracketed.

Norms: l1 is the largest column sum, linf the largest row sum (operator norms), composite is sqrt(l1 * linf). A relative residual near
the rounding unit of the dtype of the states is meaningless; `at_floor` marks it (norms amplify rounding beyond that: see `rounding.py`).
Ratios are of matrices without their size, and NaN where a matrix has none (`powers.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rankfall.rank.powers import exponent_of, length, measurable, or_nan, shift, unit

NORMS = ("composite", "l1", "linf", "frobenius", "spectral")
CENTRES = ("mean", "best")

# Collapsed float32 stacks settle near 1.7 units of rounding. At ten times this value, noise is still a tenth of it.
FLOOR_UNITS = 16.0

OFF = 0.05  # tolerance to the true value in decades: about a tenth

GAP = 1e-2  # relative difference of the two bounds of `row_centre` at which its search ends
ROW_STEPS = 400  # of `row_centre` at most, where the bounds do not agree before
COMPOSITE_STEPS = 200  # of `composite_centre`, which has no certificate to end at


def matrix_norm(x: Tensor, norm: str) -> Tensor:
    """Return a norm: (..., T, D) -> (...). l1 and linf are operator norms. The norm of 2^k x is 2^k that of x, bit for bit."""
    return matrix_norms(x, [norm])[norm]


def composite(l1: Tensor, linf: Tensor) -> Tensor:
    """Return sqrt(l1 linf). Roots are taken of units, since the root of an odd power of two is rounded, and before the product, so that
    1e-200 does not underflow."""
    exponent = exponent_of(linf, ())
    first, second = shift(torch.stack([l1, linf]), -exponent).sqrt()
    return shift(first * second, exponent)


def matrix_norms(x: Tensor, norms: Sequence[str]) -> dict[str, Tensor]:
    """Return each of these norms (...) of matrices (..., T, D), with shared sums computed once."""
    if unknown := set(norms) - set(NORMS):
        raise ValueError(f"unknown norm {unknown.pop()!r}; known: {', '.join(NORMS)}")
    values, size = {}, x.abs()
    if {"l1", "composite"}.intersection(norms):
        values["l1"] = size.sum(-2).amax(-1)
    if {"linf", "composite"}.intersection(norms):
        values["linf"] = size.sum(-1).amax(-1)
    if "composite" in norms:
        values["composite"] = composite(values["l1"], values["linf"])
    if "frobenius" in norms:
        values["frobenius"] = length(x, (-2, -1))
    if "spectral" in norms:
        values["spectral"] = torch.linalg.svdvals(x)[..., 0]
    return {norm: values[norm] for norm in norms}


def mean_centre(x: Tensor) -> Tensor:
    """Return the token mean, (..., T, D) -> (..., D), taken about the first token so that equal rows give exactly that row."""
    first = x[..., :1, :]
    return (first + (x - first).mean(-2, keepdim=True)).squeeze(-2)


def median_centre(x: Tensor) -> Tensor:
    """Return the column medians (midpoint of the two middle values), which minimise every column's absolute sum, hence the l1 norm."""
    ordered = x.sort(-2).values
    tokens = x.shape[-2]
    low, high = ordered[..., (tokens - 1) // 2, :], ordered[..., tokens // 2, :]
    return low + (high - low) / 2


def row_centre(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the centre of the smallest l1 ball that holds every row, and a lower bound on its radius: ((..., D), (...)).

        min_c max_t ||x_t - c||_1 = max_{w in simplex} sum_t w_t ||x_t - med_w(x)||_1, med_w the weighted column median.

    Any c bounds the radius from above and any w from below, so the answer has its own certificate. The search is a game of weights on
    rows against centres, both averaged over the steps. It ends when the two bounds agree within GAP, or after ROW_STEPS, for each matrix
    separately.
    """
    flat = x.reshape(-1, *x.shape[-2:])  # (M, T, D); M is the number of matrices whose search has not ended
    values, order = flat.sort(dim=-2, stable=True)  # (M, T, D): each column sorted
    start = torch.stack([mean_centre(flat), median_centre(flat)])
    radii = (flat - start.unsqueeze(-2)).abs().sum(-1).amax(-1)  # (2, M)
    centre = best = torch.where((radii[0] <= radii[1]).unsqueeze(-1), start[0], start[1])  # (M, D)
    weights = torch.full_like(flat[..., 0], 1.0 / x.shape[-2])  # (M, T)
    upper, lower = radii.amin(0), torch.zeros_like(radii[0])  # (M,)
    centres, bounds, active = best.clone(), lower.clone(), torch.arange(len(flat), device=x.device)
    for step in range(1, ROW_STEPS + 1):
        distance = (flat - centre.unsqueeze(-2)).abs().sum(-1)  # (M, T)
        radius = distance.amax(-1)
        best = torch.where((radius < upper).unsqueeze(-1), centre, best)
        # The adversary's best response, softened in early steps: weight on the rows that are farthest away.
        sharpness = 8.0 * step**0.5
        scale = radius.clamp_min(torch.finfo(x.dtype).tiny).unsqueeze(-1)
        response = torch.softmax(sharpness * distance / scale, -1)
        pace = 2.0 / (step + 2.0)
        weights = (1 - pace) * weights + pace * response
        # The lower weighted median of every column.
        mass = weights.unsqueeze(-1).expand_as(values).gather(-2, order).cumsum(-2)
        answer = values.gather(-2, (mass < 0.5).sum(-2, keepdim=True).clamp_max(x.shape[-2] - 1)).squeeze(-2)
        bound = (weights * (flat - answer.unsqueeze(-2)).abs().sum(-1)).sum(-1)
        centre = (1 - pace) * centre + pace * answer
        upper, lower = torch.minimum(upper, radius), torch.maximum(lower, bound)
        centres[active], bounds[active] = best, lower
        far = upper - lower > GAP * upper  # False for NaN, which ends the search
        if not bool(far.any()):
            break
        if not bool(far.all()):
            state = (active, flat, values, order, centre, weights, best, upper, lower)
            active, flat, values, order, centre, weights, best, upper, lower = (tensor[far] for tensor in state)
    return centres.view(*x.shape[:-2], x.shape[-1]), bounds.view(x.shape[:-2])


def composite_centre(x: Tensor, row_ball: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """Return a centre with a small composite residual, and a lower bound on the smallest possible one: ((..., D), (...)).

    The composite norm is a product of two convex functions of x and not convex, so the guarantee is limited: the residual at the
    returned centre is at most that at the mean, and at least sqrt(min l1 * min linf), the returned bound. The search descends log l1 +
    log linf with a shrinking step from the best of mean, median, row centre and the points between the last two. `row_ball`: the row
    centre with its radius, if known.
    """
    median = median_centre(x)
    rows, radius = row_ball or row_centre(x)
    shares = torch.linspace(0, 1, 9, dtype=x.dtype, device=x.device)
    candidates = torch.stack([mean_centre(x)] + [median + share * (rows - median) for share in shares])  # (S, ..., D)
    sizes = torch.stack([matrix_norm(x - c.unsqueeze(-2), "composite") for c in candidates])  # (S, ...)
    value, index = sizes.min(0)
    best = candidates.gather(0, index[None, ..., None].expand(1, *candidates.shape[1:])).squeeze(0)
    lower = matrix_norm(x - median.unsqueeze(-2), "l1").sqrt() * radius.sqrt()
    centre = best.clone()
    spread = (x - best.unsqueeze(-2)).abs().mean((-2, -1)).unsqueeze(-1)  # (..., 1): the scale of a step
    tiny = torch.finfo(x.dtype).tiny
    for step in range(COMPOSITE_STEPS + 1):
        gap = centre.unsqueeze(-2) - x
        size = gap.abs()
        columns, lines = size.sum(-2), size.sum(-1)  # (..., D), (..., T)
        if step:  # the size of the step before
            reached = composite(columns.amax(-1), lines.amax(-1))
            best = torch.where((reached < value).unsqueeze(-1), centre, best)
            value = torch.minimum(value, reached)
        l1, worst_column = columns.max(-1, keepdim=True)
        linf, worst_row = lines.max(-1, keepdim=True)
        slope = gap.sign()
        column = torch.zeros_like(columns).scatter(-1, worst_column, slope.sum(-2).gather(-1, worst_column))
        row = slope.gather(-2, worst_row.unsqueeze(-1).expand(*worst_row.shape, x.shape[-1])).squeeze(-2)
        direction = column / l1.clamp_min(tiny) + row / linf.clamp_min(tiny)
        length = torch.linalg.vector_norm(direction, dim=-1, keepdim=True).clamp_min(tiny)
        centre = centre - spread * direction / length * (0.5 / (1 + step) ** 0.5)
    return best, torch.minimum(lower, value)


def best_residuals(x: Tensor, norms: Sequence[str]) -> dict[str, Tensor]:
    """Return res(X) about the best centre of each norm, with shared centres computed once."""
    if unknown := set(norms) - {"frobenius", "l1", "linf", "composite"}:
        raise ValueError(f"no best centre for the norm {unknown.pop()!r}; use centre 'mean'")
    shifted = x - x[..., :1, :]
    centres = {"frobenius": mean_centre(shifted), "l1": median_centre(shifted)}
    if {"linf", "composite"}.intersection(norms):
        row_ball = row_centre(shifted)
        centres["linf"] = row_ball[0]
        if "composite" in norms:
            centres["composite"] = composite_centre(shifted, row_ball=row_ball)[0]
    return {norm: shifted - centres[norm].unsqueeze(-2) for norm in norms}


def residual(x: Tensor, centre: str = "mean", norm: str = "composite") -> Tensor:
    """Return res(X) = X - 1 x^T, (..., T, D). Rows are shifted by the first token before averaging, so that equal rows give exact zeros."""
    if centre not in CENTRES:
        raise ValueError(f"unknown centre {centre!r}; known: {', '.join(CENTRES)}")
    if centre == "best":
        return best_residuals(x, [norm])[norm]
    shifted = x - x[..., :1, :]
    return shifted - mean_centre(shifted).unsqueeze(-2)


def relative_residual(
    x: Tensor, norm: str = "composite", centre: str = "mean", computed: torch.dtype | None = None
) -> Tensor:
    """Return ||res(X)|| / ||X||, (...); NaN where X has no meaningful size. `computed`: as for `measurable`."""
    scaled = unit(torch.where(measurable(x, computed)[..., None, None], x, 0.0))
    return share(matrix_norm(residual(scaled, centre, norm), norm), matrix_norm(scaled, norm))


def share(rest: Tensor, size: Tensor) -> Tensor:
    """Return rest / size; NaN where size is zero, or where the quotient underflows and is thus not 0."""
    quotient = rest / size
    return torch.where((size > 0) & ((rest == 0) | (quotient >= torch.finfo(size.dtype).tiny)), quotient, torch.nan)


def floor_of(computed: torch.dtype) -> float:
    """Return the relative residual under which a state computed in this dtype is rounding noise."""
    return FLOOR_UNITS * torch.finfo(computed).eps


def at_floor(relative: Tensor, computed: torch.dtype, log10_true: Tensor | None = None) -> Tensor:
    """Check whether a relative residual is rounding noise of `computed`, the dtype of the forward pass (not of this tensor). If the true
    value is known, a deviation from it counts as noise too, since norms amplify rounding to any size."""
    floor = relative < floor_of(computed)
    return floor if log10_true is None else floor | ((relative.log10() - log10_true).abs() > OFF)


def sigma_ratio(x: Tensor, values: Tensor | None = None) -> Tensor:
    """Return sigma_2 / sigma_1, (...): distance from rank one whatever the direction of the rows. It is 0 for a single row, and NaN where
    X has no size. `values`, here and below: the singular values of X or of its unit, if known."""
    values = singular_values(x) if values is None else values
    second = values[..., 1] if values.shape[-1] > 1 else torch.zeros_like(values[..., 0])
    return or_nan(share(second, values[..., 0]), x)


def stable_ranks(x: Tensor, values: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return sum s^2 / max s^2 of the singular values s of X, and sum s^4 / max s^4, that of X X^T, both (...); NaN where X has no size."""
    values = singular_values(x) if values is None else values
    shares = (values / values[..., :1]).square()
    return or_nan(shares.sum(-1), x), or_nan(shares.square().sum(-1), x)


def singular_values(x: Tensor) -> Tensor:
    """Return the singular values of the units of matrices (..., T, D); zeros where these have none."""
    return torch.linalg.svdvals(unit(torch.where(measurable(x)[..., None, None], x, 0.0)))


def numerical_rank(x: Tensor, computed: torch.dtype | None = None, values: Tensor | None = None) -> Tensor:
    """Return the number of singular values above max(T, D) rounding units of the largest, (...), as integers. `computed`: the dtype of the
    forward pass."""
    values = singular_values(x) if values is None else values
    least = torch.finfo(computed or x.dtype).eps * max(x.shape[-2:])
    return (values > least * values[..., :1]).sum(-1)
