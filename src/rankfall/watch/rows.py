"""Rows of the table from a pass and the gradients of its step, in two parts: sums on the device, and rows from them."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from rankfall.rank.powers import NOT_FINITE, outside
from rankfall.watch.columns import ATTENTION, COLUMNS, GRADIENT, GRADIENT_NOT_FINITE, LOSS_NOT_FINITE, STATE
from rankfall.watch.gradients import QueryKeyWeights, parameter_rows, squared_norm
from rankfall.watch.layers import WatchedLayers
from rankfall.watch.records import LayerRecord, PassRecord
from rankfall.watch.statistics import STATES, WEIGHTS, effective_ranks, wide_dtype

NAMES = (*STATES, *WEIGHTS, *GRADIENT, "dead_units", "loss", "loss_broken")
NO_INPUT = "the first block is given no tensor (batch, tokens, width)"
NO_LOSS = "the model returns no scalar"
NO_TOKEN = "all tokens are padding"
ONE_TOKEN = "one token: there is nothing to compare it with"
NO_ATTENTION = (
    "no softmax over the tokens and no scaled_dot_product_attention was seen in the block; a softmax in compiled code "
    "is not seen"
)
FIRST = "layer 0 is the input of the first block"


@dataclass
class Log:
    """One logged step: sums of each value over samples with their counts, on the device, and what is known without them."""

    step: int
    time: float
    layers: list[LayerRecord]
    blocks: list[str]  # name of each layer's block
    numbers: list[int]  # of the layers
    reasons: list[str]  # why a layer has no gradient
    sums: Tensor  # (layers, len(NAMES), 2)
    heads: list[Tensor | None]  # of each layer (len(WEIGHTS), H, 2)
    names: Sequence[str] = ()  # of parameters
    parameters: Tensor | None = None  # (P, 3, 2)
    ready: Any = None  # CUDA event after the sums


def log_of(
    record: PassRecord,
    layers: WatchedLayers,
    weights: Sequence[QueryKeyWeights],
    step: int,
    scale: float,
    together: bool = False,
    heads: bool = False,
) -> Log:
    """Reduce a pass and the gradients of its step to sums on the device, without waiting for it.

    `scale`: the loss scale of the gradients in mixed precision. `together`: whether the sums of several processes will be added.
    `heads`: whether to keep the numbers of each head.
    """
    order = [layer.block for layer in record.layers if layer.block is not None]
    once = len(set(order)) == len(order) and order == sorted(order)
    numbers = [
        0 if layer.block is None else layer.block + 1 if once else number for number, layer in enumerate(record.layers)
    ]
    names = ["" if layer.block is None else layers.names[layer.block] for layer in record.layers]
    reasons, values = [], []
    device = next((layer.states.device for layer in record.layers if layer.states is not None), torch.device("cpu"))
    broken = None if record.loss is None else ~record.loss.isfinite()
    for layer in record.layers:
        squares: list[Tensor | None] = [None, None]
        reason = FIRST
        if layer.block is not None:
            squares, reason = gradient_squares(weights[layer.block], scale, together)
        reasons.append(reason)
        values.append(layer_values(layer, [*squares, layer.dead, record.loss, broken], device))
    head_sums = [
        None if layer.weights is None or not heads else sum_and_count(layer.weights.mT) for layer in record.layers
    ]
    sums = sum_and_count(pad_sequence(values, True, math.nan).mT)
    log = Log(step, time.time(), record.layers, names, numbers, reasons, sums, head_sums)
    if device.type == "cuda":
        log.ready = torch.cuda.Event()
        log.ready.record()
    return log


def layer_values(layer: LayerRecord, scalars: Sequence[Tensor | None], device: torch.device) -> Tensor:
    """Return the values (S, len(NAMES)) of a layer, NaN where not known. The first row holds the scalars."""
    states, weights = layer.states, layer.weights
    samples = max([1, *(x.shape[1] for x in (states, weights) if x is not None)])
    dtype = wide_dtype(torch.empty(0, device=device))
    values = torch.full((samples, len(NAMES)), torch.nan, device=device, dtype=dtype)
    if states is not None:
        values[:, : len(STATES)] = states.T
    begin = len(STATES) + len(WEIGHTS)
    if weights is not None:
        values[:, len(STATES) : begin] = weights.mean(-1).T
    for column, scalar in enumerate(scalars, begin):
        if scalar is not None:
            values[0, column] = scalar
    return values


def sum_and_count(values: Tensor) -> Tensor:
    """Return the sum of values (..., S) that are not NaN, and their count, (..., 2)."""
    return torch.stack([values.nansum(-1), (~values.isnan()).sum(-1)], -1)


def gradient_squares(weights: QueryKeyWeights, scale: float, together: bool) -> tuple[list[Tensor | None], str]:
    """Return the squared gradient norms of queries and keys, and the reason if one is missing."""
    pairs = [
        squared_norm(parts, scale, together) if parts else (None, weights.reason)
        for parts in (weights.queries, weights.keys)
    ]
    return [square for square, _ in pairs], next((reason for _, reason in pairs if reason), "")


def finish_log(log: Log) -> list[dict[str, Any]]:
    """Return a row for each layer. This waits for the device and computes eigenvalues, so it runs in a thread."""
    if log.ready is None:
        return rows_of_log(log)
    log.ready.synchronize()
    with torch.cuda.stream(torch.cuda.Stream(log.sums.device)):
        return rows_of_log(log)


def rows_of_log(log: Log) -> list[dict[str, Any]]:
    sums = log.sums.double().cpu() if log.sums.device.type != "mps" else log.sums.cpu().double()
    rows = []
    parameters = None if log.parameters is None else parameter_rows(log.names, log.parameters.cpu(), log.blocks)
    for place, layer in enumerate(log.layers):
        total, count = (dict(zip(NAMES, column.tolist())) for column in sums[place].unbind(-1))
        mean = {name: finite(total[name] / count[name]) if count[name] else None for name in NAMES}
        row: dict[str, Any] = dict.fromkeys(column.name for column in COLUMNS)
        tokens, samples = int(total["tokens"]), int(count["tokens"])
        whole = layer.padding == "left out" and tokens == samples * layer.shape[1]
        row |= {"run": 0, "step": log.step, "layer": log.numbers[place], "block": log.blocks[place], "time": log.time}
        row |= {"samples": samples, "tokens": tokens or None, "padding": "none" if whole else layer.padding}
        known = mean["entropy"] is not None and mean["causal"] is not None
        mask = "unknown" if not known else "causal" if mean["causal"] else "bidirectional"
        row |= {"dtype": str(layer.dtype).removeprefix("torch."), "mask": mask}
        row |= {name: mean[name] for name in ("dead_units", "broken")}
        broken = mean["loss_broken"]  # None: there is no loss
        row |= {"loss": None if broken else mean["loss"]}
        row |= {"loss_reason": NO_LOSS if broken is None else LOSS_NOT_FINITE if broken else ""}
        row |= state_columns(layer, mean, total, samples)
        row |= attention_columns(layer, mean)
        row |= gradient_columns(mean, log.reasons[place])
        row |= {"heads": head_columns(log.heads[place]), "parameters": parameters and parameters[place]}
        rows.append(row)
    if len(rows) > 1:
        rows[0]["mask"] = rows[1]["mask"]
    return rows


def state_columns(
    layer: LayerRecord, mean: dict[str, float | None], total: dict[str, float], samples: int
) -> dict[str, Any]:
    """Return the columns of the state from means and totals over samples, with the reason if one is null."""
    if layer.states is None or layer.kept is None:
        return {"state_reason": NO_INPUT}
    ranks = effective_ranks(layer.kept)
    ranks = ranks[~ranks.isnan()] if total["tokens"] > samples else ranks[:0]
    row = {name: mean.get(name) for name in STATE}
    row["effective_rank"] = finite(ranks.double().mean().item()) if len(ranks) else None
    reason = ""
    if None in row.values():
        size = NO_TOKEN if not total["tokens"] else ONE_TOKEN if total["tokens"] <= samples else ""
        reason = size or (NOT_FINITE if row["norm"] is None else outside(layer.dtype))
    return row | {"state_reason": reason, "residual_floor": None if mean["floor"] is None else mean["floor"] > 0.5}


def attention_columns(layer: LayerRecord, mean: dict[str, float | None]) -> dict[str, Any]:
    if layer.weights is None:
        return {"attention_reason": FIRST if layer.block is None else NO_ATTENTION}
    row = {name: mean[name] for name in ATTENTION}
    reason = "the weights are not finite, or of one token" if None in row.values() else ""
    return row | {"attention_reason": reason, "queries": layer.queries}


def head_columns(sums: Tensor | None) -> list[dict[str, float | None]] | None:
    """Return the means over samples of each head, from sums and counts (len(WEIGHTS), H, 2)."""
    if sums is None:
        return None
    values = dict(zip(WEIGHTS, (sums[..., 0] / sums[..., 1]).tolist()))
    return [dict(zip(ATTENTION, map(finite, head))) for head in zip(*(values[name] for name in ATTENTION))]


def gradient_columns(mean: dict[str, float | None], reason: str) -> dict[str, Any]:
    row = {name: None if mean[name] is None else math.sqrt(mean[name] or 0.0) for name in GRADIENT}
    lost = None in row.values()
    return row | {"gradient_reason": reason or (GRADIENT_NOT_FINITE if lost else "")}


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
