"""Rows of the table from a pass and the gradients of its step."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rankfall.rank.powers import NOT_FINITE, outside
from rankfall.rank.residual import at_floor
from rankfall.watch.blocks import Blocks
from rankfall.watch.columns import ATTENTION, COLUMNS, GRADIENT, STATE
from rankfall.watch.gradients import QueryKeyWeights, gradient_norm
from rankfall.watch.records import LayerRecord, PassRecord

NO_INPUT = "the first block is given no tensor (batch, tokens, width)"
NO_TOKEN = "all tokens are padding"
ONE_TOKEN = "one token: there is nothing to compare it with"
NO_ATTENTION = "no softmax over the tokens and no scaled_dot_product_attention was seen in the block"


def rows_of(
    record: PassRecord, blocks: Blocks, weights: Sequence[QueryKeyWeights], step: int, run: int, scale: float = 1.0
) -> list[dict[str, Any]]:
    """Return a row for each layer. `scale`: the loss scale of the gradients in mixed precision."""
    now = time.time()
    order = [one.block for one in record.layers if one.block is not None]
    once = len(set(order)) == len(order) and order == sorted(order)
    rows = []
    for place, layer in enumerate(record.layers):
        row: dict[str, Any] = dict.fromkeys(column.name for column in COLUMNS)
        number = 0 if layer.block is None else layer.block + 1 if once else place
        row |= {
            "run": run,
            "step": step,
            "layer": number,
            "time": now,
            "samples": layer.samples,
            "padding": layer.padding,
        }
        row |= {"tokens": layer.tokens or None, "dtype": str(layer.dtype).removeprefix("torch.")}
        row |= {"block": "" if layer.block is None else blocks.names[layer.block], "mask": mask_of(layer.attention)}
        row |= state_columns(layer)
        row |= attention_columns(layer)
        row |= gradient_columns(None if layer.block is None else weights[layer.block], scale)
        rows.append(row)
    if len(rows) > 1:
        rows[0]["mask"] = rows[1]["mask"]
    return rows


def state_columns(layer: LayerRecord) -> dict[str, Any]:
    if layer.numbers is None:
        return {"state_reason": NO_INPUT}
    found: dict[str, Any] = {name: mean(layer.numbers[name]) for name in STATE}
    reason = ""
    if any(found[name] is None for name in STATE):
        size = NO_TOKEN if not layer.tokens else ONE_TOKEN if layer.tokens <= layer.samples else ""
        reason = size or (NOT_FINITE if found["norm"] is None else outside(layer.dtype))
    known = layer.numbers["residual"]
    known = known[~known.isnan()]
    floor = bool(at_floor(known, layer.dtype).double().mean() > 0.5) if len(known) else None
    return found | {"state_reason": reason, "residual_floor": floor}


def attention_columns(layer: LayerRecord) -> dict[str, Any]:
    if layer.attention is None:
        return {"attention_reason": "layer 0 is the input of the first block" if layer.block is None else NO_ATTENTION}
    found = {name: mean(layer.attention[name]) for name in ATTENTION}
    return found | {"attention_reason": "the weights are not finite, or of one token" if None in found.values() else ""}


def gradient_columns(weights: QueryKeyWeights | None, scale: float) -> dict[str, Any]:
    if weights is None:
        return {"gradient_reason": "layer 0 is the input of the first block"}
    reasons, found = [], {}
    for name, parts in zip(GRADIENT, (weights.queries, weights.keys)):
        found[name], reason = gradient_norm(parts, scale) if parts else (None, weights.reason)
        reasons.append(reason)
    return found | {"gradient_reason": next(filter(None, reasons), "")}


def mask_of(attention: dict[str, Tensor] | None) -> str:
    if attention is None or bool(attention["entropy"].isnan().all()):
        return "unknown"
    return "causal" if bool((attention["causal"] == 1).any()) else "bidirectional"


def mean(values: Tensor) -> float | None:
    """Return the mean over the samples that are not NaN, or None if there are none."""
    known = values[~torch.isnan(values)]
    value = known.double().mean().item() if len(known) else math.nan
    return value if math.isfinite(value) else None
