"""Rows of `model_law`: the true residual of a real model below every floor, and the one-layer bound on its real weights.

Residuals are propagated apart from what tokens share (measures/centred), so 1e-100 is as exact as 0.1. Beside it stands what the
same arithmetic gives in the ordinary way, and the bound of the paper for one attention layer without skip,

    ||res(SA(X))|| <= (4 gamma H beta / sqrt(d_qk)) ||res(X)||^3,   beta = max_h ||W_QK,h||_1 ||W_h||,   composite norm,

which is stated for score ranges up to 1.256 only, and says something only where factor * ||res(X)||^2 < 1. It speaks of the
attention alone: the norm that follows it in these models is outside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from rankfall.measures import _residual as res
from rankfall.measures._bounds import LIMIT, Bounds, bounds, log10_norm
from rankfall.measures.centred.block import step
from rankfall.measures.centred.state import State, begin, scaled_to
from rankfall.pretrained.convert import as_network, convertible, first_states
from rankfall.pretrained.subject import Spec, Subject, subjects
from rankfall.pretrained.surgery import Variant

STEP = 0.1  # how much smaller, in natural logs, R is made for the local exponent


def law(spec: Spec, seeds: Sequence[int], samples: int) -> list[dict[str, Any]]:
    """All rows of a model; none where it has no form in our own blocks."""
    rows: list[dict[str, Any]] = []
    for subject in subjects(spec, seeds):
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
    state, ordinary, answer = begin(network, start), start, None
    rows = []
    for layer in range(len(network.blocks) + 1):
        block: Any = network.blocks[layer] if layer < len(network.blocks) else None
        bound = None if block is None or variant.attention_skip else of_attention(block, state)
        for sample in range(start.shape[1]):
            rows.append(
                {
                    "layer": layer,
                    "sample": sample,
                    "log10_residual": finite(log10_relative(state), sample),
                    "direct": float(res.relative_residual(ordinary[0, sample])),
                    "exponent": None if answer is None else finite(answer, sample),
                    **_theory(bound, state, sample),
                }
            )
        if block is not None:
            after = step(block, state)
            answer, state, ordinary = exponent(block, state, after), after, block(ordinary)
    return rows


def log10_relative(state: State) -> Tensor:
    """log10 of ||res(X)|| / ||X||, (1, B), at any scale."""
    return log10_norm(state.rest, "composite") - res.matrix_norm(state.full(), "composite").log10()


def exponent(block: Any, before: State, after: State) -> Tensor:
    """d log ||R out|| / d log ||R in||, (1, B): 3 where a cubic law rules, 1 where decay is geometric."""
    smaller = step(block, scaled_to(before, before.rest.log - STEP))
    change = log10_norm(after.rest, "composite") - log10_norm(smaller.rest, "composite")
    return change * math.log(10) / STEP


def of_attention(block: Any, state: State) -> Bounds:
    """The bound's terms for the attention of a block alone."""
    return bounds(SimpleNamespace(attention=block.attention, mlp=None), state)


def _theory(bound: Bounds | None, state: State, sample: int) -> dict[str, Any]:
    if bound is None:
        return dict.fromkeys(("log10_factor", "log10_contraction", "score_range", "condition", "vacuous"))
    contraction = finite(bound.log10_factor + 2 * log10_norm(state.rest, "composite"), sample)
    reach = finite(bound.score_range, sample)
    return {
        "log10_factor": finite(bound.log10_factor, sample),
        "log10_contraction": contraction,
        "score_range": reach,
        "condition": None if reach is None else reach <= LIMIT,
        "vacuous": None if contraction is None else contraction >= 0,
    }


def finite(value: Tensor, sample: int) -> float | None:
    """One entry of (1, B) as a number; null where rows are equal to the last digit."""
    number = float(value[0, sample])
    return number if math.isfinite(number) else None
