"""Rows of `model_law`: the true residual of a real model below every floor, and the one-layer bounds on its real weights.

Residuals are propagated apart from what tokens share (`rank/centred/`), so 1e-100 is as exact as 0.1. Beside it stands what the
same arithmetic gives in the ordinary way, and the bounds on one attention layer without skip (rank/bounds.py). They speak of
the attention alone, the norm that follows it in these models being outside, so they are set beside what the attention leaves before
that norm. Where scores spread too far for their proof they are null, with the reason.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from rankfall.models.convert import as_network, convertible, first_states
from rankfall.models.subject import Request, Subject, subjects
from rankfall.models.variants import Variant
from rankfall.nets.norms.none import none as no_norm
from rankfall.rank import residual as res
from rankfall.rank.bounds import bounds, leave_theory_empty, log10_norm, one_layer, refusal_of_attention, withhold
from rankfall.rank.centred.attention import attend
from rankfall.rank.centred.block import step
from rankfall.rank.centred.state import State, begin
from rankfall.rank.exponent import exponent, none_reason, pick
from rankfall.rank.powers import or_nan


def law(request: Request, seeds: Sequence[int], samples: int) -> list[dict[str, Any]]:
    """All rows of a model; none where it has no form in our own blocks."""
    rows: list[dict[str, Any]] = []
    for subject in subjects(request, seeds):
        if not convertible(subject):
            return []
        start = first_states(subject, 0, min(samples, subject.batch.samples))
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
    """A row a sample, from columns (1, B) of what the layer did."""
    found = {"log10_residual": log10_relative(state)} | found
    found["direct"] = res.relative_residual(ordinary)  # (1, B)
    return [
        {"layer": layer, "sample": sample, "value_reason": none_reason(found["log10_residual"][0, sample])}
        | withhold({name: pick(value, 0, sample) for name, value in found.items()})
        for sample in range(ordinary.shape[1])
    ]


def log10_relative(state: State) -> Tensor:
    """log10 of ||res(X)|| / ||X||, (1, B), at any scale."""
    x = state.full()
    return or_nan(log10_norm(state.rest, "composite") - res.matrix_norm(x, "composite").log10(), x)


def attention_alone(block: Any) -> Any:
    """The block as the lemma sees it: its attention and its skip, without what follows them."""
    return SimpleNamespace(attention=block.attention, residual=block.residual, norm1=no_norm, mlp=None)


def _theory(block: Any, before: State) -> dict[str, Any]:
    """Bounds on what the block's attention makes of a state, beside what it does make of it, each (1, B)."""
    alone = attention_alone(block)
    stopped = refusal_of_attention(alone, before)
    if stopped:
        return leave_theory_empty(stopped)
    left = log10_norm(attend(block.attention, before).rest, "composite")
    return {"log10_attention": left} | one_layer(bounds(alone, before), left)
