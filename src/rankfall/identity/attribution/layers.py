"""Rows of the attribution tables for one layer of one network: shares by method, mixing ratios, and agreement of methods.

Contributions are squares (M, S, N, T): to N tokens j in each of S samples, from all T tokens i. Their mean over M directions estimates
the square (M = 1: exact). Leaving out one direction at a time gives the standard error of a number (the jackknife). Resampling the
samples, each with all its tokens, gives the interval of a median (the bootstrap), since tokens of one text are not independent.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rankfall.identity.attribution.mixing import Mixing, mixing, roll_out
from rankfall.identity.jacobian import JACOBIAN, SUMMED
from rankfall.identity.shares import NOT_FIRST, correlations, quantities, shares
from rankfall.identity.views import AttentionView
from rankfall.random_streams import stream
from rankfall.rank.powers import least

ABLATION = "ablation"
ALL, WITHOUT_FIRST = "all", "without first"
MIXING, SPEARMAN, SPEARMAN_OTHERS = "mixing ratio", "spearman", "spearman of others"
QUANTILES = {"low": 0.05, "lower": 0.25, "median": 0.5, "upper": 0.75, "high": 0.95}
NOTHING: dict[str, Any] = dict.fromkeys(
    ("other", "value", "deviation", "error", "median_error", "median_low", "median_high", "directions", *QUANTILES)
)
DRAWS = 1000  # bootstrap draws of samples, for the interval of a median
FEWEST = 8  # samples below which the interval would be too narrow
CONSTANT = "features behind a norm sum to a constant, so that this gradient is rounding"
Rows = list[dict[str, Any]]


def compute_layers(
    views: list[AttentionView],
) -> tuple[list[dict[str, Tensor]], list[dict[str, str]], list[dict[str, Tensor]]]:
    """Compute the contributions in each layer of one network.

    Return, for each layer, the matrices (B, T, T) from the first layer to it, reasons for missing ones, and mixing ratios.
    """
    layers: list[Mixing] = [mixing(view) for view in views]
    matrices: list[dict[str, Tensor]] = []
    missing: list[dict[str, str]] = []
    reason = ""
    for layer in layers:
        reason = reason or layer.reason
        by_method = {"rollout": layer.rollout}
        if layer.norms is not None and not reason:
            by_method["norms"] = layer.norms
        if matrices:
            by_method = {name: roll_out([matrices[-1][name], matrix]) for name, matrix in by_method.items()}
        matrices.append({"attention": layer.attention} | by_method)
        missing.append({"norms": reason} if reason else {})
    return matrices, missing, [layer.ratios for layer in layers]


def share_rows(squares: dict[str, Tensor], tokens: Tensor, missing: dict[str, str]) -> Rows:
    """Return the shares of one layer by every method, with and without the first token, and rank correlations.

    `tokens` (S, N) are the tokens j.
    """
    kept = {method: value.double() for method, value in squares.items()}
    empty = dict(missing)
    if SUMMED in squares and _is_rounding(squares[SUMMED], squares[JACOBIAN]):
        empty[SUMMED] = CONSTANT
        del kept[SUMMED]
    names = quantities(torch.ones(*tokens.shape, 2), tokens.clamp_max(1))
    rows = [
        row(method, kept_tokens, name, None, tokens, reason=reason)
        for method, reason in empty.items()
        for kept_tokens in (ALL, WITHOUT_FIRST)
        for name in names
    ]
    for method, value in kept.items():
        for kept_tokens in (ALL, WITHOUT_FIRST):
            rows += _estimate_rows(method, kept_tokens, value, tokens)
    # Tokens without shares have no ranks either.
    sizes = {method: value.mean(0).clamp_min(0).sqrt() for method, value in kept.items()}
    sizes = {method: torch.where(shares(value).isnan(), 0.0, value) for method, value in sizes.items()}
    # Entries that are zero for every method are masked.
    counted = torch.stack([value > 0 for value in sizes.values()]).any(0)
    itself = torch.zeros_like(counted).scatter_(-1, tokens.unsqueeze(-1), True)
    for quantity, entries in ((SPEARMAN, counted), (SPEARMAN_OTHERS, counted & ~itself)):
        for (first, second), value in correlations(sizes, entries).items():
            rows.append(row(first, ALL, quantity, value, tokens, other=second))
    return rows


def ratio_rows(ratios: dict[str, Tensor], missing: dict[str, str]) -> Rows:
    """Return the mixing ratios of one layer, over all tokens (B, T)."""
    (length,) = {value.shape[1] for value in ratios.values()}
    tokens = torch.arange(length).expand(len(next(iter(ratios.values()))), -1)
    methods = dict.fromkeys((*ratios, "norms and skip", "norms, skip and norm"))
    return [
        row(method, ALL, MIXING, ratios.get(method), tokens, reason="" if method in ratios else missing["norms"])
        for method in methods
    ]


def _estimate_rows(method: str, kept_tokens: str, squares: Tensor, tokens: Tensor) -> Iterator[dict[str, Any]]:
    count, total = len(squares), squares.sum(0)
    whole = _values(squares.mean(0), tokens, kept_tokens)
    # The quantities without one direction, for each direction.
    without = [_values((total - square) / (count - 1), tokens, kept_tokens) for square in squares if count > 1]
    for name, value in whole.items():
        estimate = row(method, kept_tokens, name, value, tokens, directions=count if count > 1 else None)
        if without:
            described = [_describe_values(values[name]) for values in without]
            for column, statistic in (("error", "value"), ("median_error", "median")):
                x = np.array([numbers[statistic] for numbers in described], dtype=float)  # NaN for a missing number
                error = float(np.sqrt((count - 1) / count * np.square(x - x.mean()).sum()))  # by the jackknife
                estimate[column] = None if np.isnan(x).any() else error
        if name == NOT_FIRST:
            estimate |= dict.fromkeys((*QUANTILES, "median_error"))
        else:
            estimate["median_low"], estimate["median_high"] = bootstrap_median(value.cpu().double().numpy())
        yield estimate


def _values(squares: Tensor, tokens: Tensor, kept_tokens: str) -> dict[str, Tensor]:
    contributions = squares.clamp_min(0).sqrt()
    if kept_tokens == WITHOUT_FIRST:
        contributions = torch.cat([torch.zeros_like(contributions[..., :1]), contributions[..., 1:]], -1)
    values = quantities(contributions, tokens)
    if kept_tokens == WITHOUT_FIRST:
        values = {name: value.masked_fill(tokens == 0, torch.nan) for name, value in values.items()}
    return values


def row(
    method: str,
    kept_tokens: str,
    quantity: str,
    values: Tensor | None,
    tokens: Tensor,
    *,
    reason: str = "",
    **more: Any,
) -> dict[str, Any]:
    """Return one row. A missing number is null, with the reason."""
    labels: dict[str, Any] = {"method": method, "kept_tokens": kept_tokens, "quantity": quantity} | NOTHING
    described = _describe_values(values) if values is not None else dict.fromkeys(("value",))
    if described["value"] is None and not reason:
        reason = "all contributions are zero, equal, or beyond the range of their number format"
    counts = {"samples": tokens.shape[0], "tokens": tokens.numel() - int((tokens == 0).sum()) * (kept_tokens != ALL)}
    return labels | described | counts | {"value_reason": reason} | more


def _describe_values(values: Tensor) -> dict[str, Any]:
    """Return mean and quantiles over tokens, and the deviation of the samples' means. Tokens without a number (NaN) are left out."""
    numbers = values.cpu().double().numpy()
    known = numbers[~np.isnan(numbers)]
    if not len(known):
        return dict.fromkeys(("value", "deviation", *QUANTILES))
    means = [sample[~np.isnan(sample)].mean() for sample in numbers if not np.isnan(sample).all()]
    quantiles = {name: float(value) for name, value in zip(QUANTILES, np.quantile(known, list(QUANTILES.values())))}
    return quantiles | {
        "value": float(known.mean()),
        "deviation": float(np.std(means, ddof=1)) if len(means) > 1 else None,
    }


def bootstrap_median(values: np.ndarray) -> tuple[float | None, float | None]:
    """Return the 95% interval of the median of values (samples, tokens), over resampled samples; None if there are too few."""
    samples = len(values)
    if samples < FEWEST or np.isnan(values).all():
        return None, None
    drawn = stream(0, "attribution", "bootstrap").integers(samples, size=(DRAWS, samples))
    medians = [np.nanmedian(values[chosen]) for chosen in drawn]
    low, high = np.quantile(medians, [0.025, 0.975])
    return float(low), float(high)


def _is_rounding(summed: Tensor, jacobian: Tensor) -> bool:
    """Check whether the gradient of a sum is zero up to rounding. False if gradients are too small to be squared."""
    limit, whole = torch.finfo(jacobian.dtype).eps ** 0.5, float(jacobian.mean(0).sum())
    return whole >= least(jacobian.dtype) / limit**2 and float(summed.mean(0).sum()) <= limit**2 * whole
