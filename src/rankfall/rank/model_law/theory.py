"""Rows of `model_law`: the residual of a real model below every floor, and the one-layer bounds on its weights.

Residuals are propagated apart from the part that tokens share (`rank/centred/`), so 1e-100 is as exact as 0.1. They are listed with the
residuals of an ordinary forward pass and with the bounds on one attention layer without skip (rank/bounds.py). The bounds are about the
attention alone, since the norm follows outside it in these models, so they are compared with the attention's output before that norm.
Where scores spread too far for their proof they are null, with the reason.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from rankfall.models.convert import as_network, convertible
from rankfall.models.restart import first_states
from rankfall.models.subject import Request, Subject, subjects
from rankfall.nets.norms.none import none as no_norm
from rankfall.rank import residual as res
from rankfall.rank.bounds import bounds, leave_theory_empty, log10_norm, one_layer, refusal_of_attention, withhold
from rankfall.rank.centred.attention import attend
from rankfall.rank.centred.block import step
from rankfall.rank.centred.state import State, begin
from rankfall.rank.exponent import exponent, none_reason, pick
from rankfall.rank.powers import or_nan
from rankfall.streams.variants import Variant


def law(request: Request, seeds: Sequence[int], samples: int) -> list[dict[str, Any]]:
    """Return all rows of a model; none if it cannot be converted to Rankfall's blocks."""
    rows: list[dict[str, Any]] = []
    for subject in subjects(request, seeds):
        if not convertible(subject):
            return []
        start = first_states(subject, 0, min(samples, subject.batch.samples)).double()[None]
        for variant in subject.variants:
            rows += [{**subject.labels(), "variant": variant.name, **row} for row in _variant(subject, variant, start)]
        del subject
    return rows


@torch.no_grad()
def _variant(subject: Subject, variant: Variant, start: Tensor) -> list[dict[str, Any]]:
    network = as_network(subject, variant)
    state, ordinary = begin(network, start), start
    rows = _rows(0, state, ordinary, {"exponent": None} | leave_theory_empty("the input"))
    for layer, block in enumerate(network.blocks, 1):
        after, ordinary = step(block, state), block(ordinary)
        rows += _rows(layer, after, ordinary, {"exponent": exponent(block, state, after)} | _theory(block, state))
        state = after
    return rows


def _rows(layer: int, state: State, ordinary: Tensor, found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a row per sample, from columns (1, B) of a layer."""
    found = {"log10_residual": log10_relative(state)} | found
    found["direct"] = res.relative_residual(ordinary)  # (1, B)
    return [
        {"layer": layer, "sample": sample, "value_reason": none_reason(found["log10_residual"][0, sample])}
        | withhold({name: pick(value, 0, sample) for name, value in found.items()})
        for sample in range(ordinary.shape[1])
    ]


def log10_relative(state: State) -> Tensor:
    """Return log10 of ||res(X)|| / ||X||, (1, B), at any scale."""
    x = state.full()
    return or_nan(log10_norm(state.rest, "composite") - res.matrix_norm(x, "composite").log10(), x)


def attention_alone(block: Any) -> Any:
    """Return the block as the lemma sees it: its attention and its skip, without what follows them."""
    return SimpleNamespace(attention=block.attention, residual=block.residual, norm1=no_norm, mlp=None)


def _theory(block: Any, before: State) -> dict[str, Any]:
    """Return bounds on the attention's output for a state, beside its actual residual, each (1, B)."""
    alone = attention_alone(block)
    stopped = refusal_of_attention(alone, before)
    if stopped:
        return leave_theory_empty(stopped)
    left = log10_norm(attend(block.attention, before).rest, "composite")
    return {"log10_attention": left} | one_layer(bounds(alone, before), left)
