"""Concentration of attention weights by layer and head: entropy, inverse participation ratio, largest share, share of the first token.

The quantities are computed in float64 over the first test samples, sentinels included, for each head and as the mean over heads of the
heads' numbers (not of the mean weights, which are flatter than those of any head). A row whose weights are all zero, as `softpick` can
give, has no shares and is left out. Where the input of the attention is zero or beyond the range of float64, the row has a reason and no
value.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from rankfall.measure.context import Context, Rows
from rankfall.measure.shared import in_float64, mean_of_samples
from rankfall.nets.attention_inputs import attention_inputs
from rankfall.rank.powers import reason_of

USES = ("weights",)
COST = {"seconds": 0.2, "megabytes": 100.0}
FIRST_LEFT_OUT = "the first token is left out"
ONE_TOKEN = "the sequence has one token"
NOT_FINITE = "weights are not finite"
ALL_ZERO = "all weights are zero"


@torch.no_grad()
def attention_weights(context: Context, *, samples: int = 8, heads: bool = True) -> Rows:
    """Measure every layer.

    `heads`: also each head alone.
    """
    network, inputs = in_float64(context, samples)
    rows: Rows = []
    for layer, (block, read) in enumerate(zip(network.blocks, attention_inputs(network, inputs)), 1):
        weights = block.attention.weights(read)[0]  # (B, H, T, T)
        about = {"layer": layer, "tokens": read.shape[2]}
        rows += [about | row for row in of_layer(weights, reason_of(read[0]), heads)]
    return rows


def of_layer(weights: Tensor, why: str, heads: bool) -> Iterator[dict[str, Any]]:
    """Yield all rows of a layer's weights (B, H, T, T). `why`: what is wrong with the input of the attention."""
    for left_out, part in (("nothing", weights), ("first token", without_first(weights))):
        if part.shape[-1] == 0:
            empty = weights.new_full(weights.shape[:2], torch.nan)
            yield from both(
                dict.fromkeys(QUANTITIES, empty), {"left_out": left_out, "rows_without": 0.0}, ONE_TOKEN, heads
            )
            continue
        zero = (part == 0).all(-1)  # (B, H, T)
        finite = bool(part.isfinite().all())
        found = {name: values.nanmean(-1) for name, values in of_rows(part).items()}  # (B, H)
        reason = why or ("" if finite else NOT_FINITE) or ALL_ZERO
        if why or not finite:
            found = {name: torch.full_like(values, torch.nan) for name, values in found.items()}
        yield from both(found, {"left_out": left_out, "rows_without": zero.double().mean().item()}, reason, heads)


def both(found: dict[str, Tensor], labels: dict[str, Any], reason: str, heads: bool) -> Iterator[dict[str, Any]]:
    """Yield rows of numbers (B, H): of their mean over heads, and of each head."""
    for name, values in found.items():
        if name == "first_share" and labels["left_out"] == "first token":
            values, reason = torch.full_like(values, torch.nan), FIRST_LEFT_OUT
        for head, each in [(None, values.mean(1)), *(enumerate(values.unbind(1)) if heads else ())]:
            yield labels | {"attention_head": head, "quantity": name} | mean_of_samples(each, reason)


QUANTITIES = ("entropy", "inverse_participation", "largest_share", "first_share")


def without_first(weights: Tensor) -> Tensor:
    """Drop the first row and column: (..., T, T) -> (..., T - 1, T - 1)."""
    return weights[..., 1:, 1:]


def shares(weights: Tensor) -> Tensor:
    """Return |a_ij| / sum_j |a_ij|; NaN in rows of zeros.

    Rows are divided by their largest entry first, so that no sum overflows or vanishes.
    """
    size = weights.abs()
    size = size / size.amax(-1, keepdim=True)
    return size / size.sum(-1, keepdim=True)


def of_rows(weights: Tensor) -> dict[str, Tensor]:
    """Return each quantity (..., T) of every row of weights (..., T, T'); NaN for a row of zeros."""
    p = shares(weights)
    return {
        "entropy": -torch.xlogy(p, p).sum(-1),
        "inverse_participation": p.square().sum(-1),
        "largest_share": p.amax(-1),
        "first_share": p[..., 0],
    }
