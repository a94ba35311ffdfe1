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
from rankfall.nets.network import attention_inputs
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
    for layer, (block, x) in enumerate(zip(network.blocks, attention_inputs(network, inputs)), 1):
        weights = block.attention.weights(x)[0]  # (B, H, T, T)
        about = {"layer": layer, "tokens": x.shape[2]}
        rows += [about | row for row in layer_rows(weights, reason_of(x[0]), heads)]
    return rows


def layer_rows(weights: Tensor, input_reason: str, heads: bool) -> Iterator[dict[str, Any]]:
    """Yield all rows of a layer's weights (B, H, T, T): of their mean over heads, and of each head.

    `input_reason`: why the input of the attention has no size; else empty.
    """
    for left_out, part in (("nothing", weights), ("first token", weights[..., 1:, 1:])):
        nonempty = part.shape[-1] > 0
        reason = (input_reason or ("" if bool(part.isfinite().all()) else NOT_FINITE)) if nonempty else ONE_TOKEN
        zero = (part == 0).all(-1).double().mean().item() if nonempty else 0.0
        numbers = dict.fromkeys(QUANTITIES, weights.new_full(weights.shape[:2], torch.nan))  # (B, H)
        if not reason:
            numbers, reason = {name: values.nanmean(-1) for name, values in concentrations(part).items()}, ALL_ZERO
        for name, values in numbers.items():
            if name == "first_share" and left_out == "first token":
                values, reason = torch.full_like(values, torch.nan), FIRST_LEFT_OUT
            for head, by_sample in [(None, values.mean(1)), *(enumerate(values.unbind(1)) if heads else ())]:
                labels = {"left_out": left_out, "rows_without": zero, "attention_head": head, "quantity": name}
                yield labels | mean_of_samples(by_sample, reason)


QUANTITIES = ("entropy", "inverse_participation", "largest_share", "first_share")


def concentrations(weights: Tensor) -> dict[str, Tensor]:
    """Return each quantity (..., T) of every row of weights (..., T, T') from its shares |a_ij| / sum_j |a_ij|; NaN for a row of zeros."""
    size = weights.abs()
    size = size / size.amax(-1, keepdim=True)  # so that no sum overflows or vanishes
    p = size / size.sum(-1, keepdim=True)
    return {
        "entropy": -torch.xlogy(p, p).sum(-1),
        "inverse_participation": p.square().sum(-1),
        "largest_share": p.amax(-1),
        "first_share": p[..., 0],
    }
