"""The table of a run: one row per logged step and layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from rankfall.report.schema import Column

COLUMNS = (
    Column("run", "int", "number of the run in its file: 0 for the first training, 1 for the next"),
    Column("step", "int", "number of optimiser steps, including this one; states are those of the weights before it"),
    Column("layer", "int", "0 is the state that enters the first block"),
    Column("block", "text", "the module that returned the state; empty for layer 0"),
    Column("time", "float", "seconds since 1970", provenance=True),
    Column("samples", "int", "measured samples of the batch"),
    Column("tokens", "int", "tokens of these samples, without padding", nullable=True),
    Column("mask", "text", "causal or bidirectional, by the attention weights; unknown without them"),
    Column("padding", "text", "left out, none, or unknown: a mask was passed that does not fit the states"),
    Column("dtype", "text", "number format of the states; residuals, norms and attention are computed in float32 or wider"),
    Column("residual", "float", "|X - 1 x^T| / |X| about the mean token, composite norm; mean over samples", nullable=True),
    Column("residual_floor", "bool", "the residual is rounding noise of `dtype`", nullable=True),
    Column("norm", "float", "length of a token's vector, RMS over tokens, mean over samples", nullable=True),
    Column("effective_rank", "float", "exponential of the entropy of the shares of singular values; of at most 512 tokens", nullable=True),
    Column("participation_ratio", "float", "(tr G)^2 / tr G^2 of the Gram matrix G of at most 512 tokens", nullable=True),
    Column("state_reason", "text", "why one of these is null, else empty"),
    Column("entropy", "float", "entropy of a row of attention weights, in nats; with a causal mask, without the first row", unit="nats",
    nullable=True), Column("largest_share", "float", "largest weight of the same rows, mean", nullable=True),
    Column("first_share", "float", "weight on the first token in other tokens' rows, mean", nullable=True),
    Column("largest_logit", "float", "largest score before the softmax; mean over heads and samples", nullable=True),
    Column("queries", "int", "rows of attention weights that are measured, per head and sample", nullable=True),
    Column("attention_reason", "text", "why one of these is null, else empty"),
    Column("dead_units", "float", "share of units of activation functions (ReLU, GELU, SiLU) that no token uses", nullable=True),
    Column("broken", "float", "share of all samples of the batch whose state is not finite", nullable=True),
    Column("loss", "float", "the scalar that the model returned in this pass", nullable=True),
    Column("loss_reason", "text", "why it is null, else empty"),
    Column("gradient_queries", "float", "Frobenius norm of the gradient of the block's query weights at the step", nullable=True),
    Column("gradient_keys", "float", "the same norm for the block's key weights", nullable=True),
    Column("gradient_reason", "text", "why one is null, else empty"),
    Column("heads", "heads", "the four numbers of attention of each head, with detail='heads'", nullable=True),
    Column("parameters", "parameters", "gradient_norm and update_ratio of the layer's parameters, with detail='parameters'", nullable=True),
)  # fmt: skip
# reasons that alarms read
GRADIENT_NOT_FINITE, LOSS_NOT_FINITE = "the gradient is not finite", "the loss is not finite"
STATE = ("residual", "norm", "effective_rank", "participation_ratio")
ATTENTION = ("entropy", "largest_share", "first_share", "largest_logit")
UNITS = ("dead_units",)
GRADIENT = ("gradient_queries", "gradient_keys")
CURVES = (*STATE, *ATTENTION, *UNITS, *GRADIENT)
PARAMETER = ("gradient_norm", "update_ratio")
KINDS = {
    "heads": pa.list_(pa.struct([(name, pa.float64()) for name in ATTENTION])),
    "parameters": pa.list_(pa.struct([("name", pa.string()), *((name, pa.float64()) for name in PARAMETER)])),
    "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "text": pa.string(),
}  # fmt: skip
SCHEMA = pa.schema(
    [pa.field(column.name, KINDS[column.type], metadata={"meaning": column.meaning}) for column in COLUMNS]
)


def curves_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the numbers of a log by the names of their curves: rankfall/residual/layer_03, rankfall/entropy/layer_03_head_00, ..."""
    curves: dict[str, float | None] = {}
    for row in rows:
        layer = f"layer_{row['layer']:02d}"
        curves |= {f"rankfall/{name}/{layer}": row[name] for name in CURVES}
        for number, head in enumerate(row["heads"] or ()):
            curves |= {f"rankfall/{name}/{layer}_head_{number:02d}": head[name] for name in ATTENTION}
        for parameter in row["parameters"] or ():
            curves |= {f"rankfall/{name}/{parameter['name']}": parameter[name] for name in PARAMETER}
    return {name: value for name, value in curves.items() if value is not None}
