"""Rows of `model_law`: the true residual of a real model below every floor, and the one-layer bound on its real weights.

Residuals are propagated apart from what tokens share (measures/centred), so 1e-100 is as exact as 0.1. Beside it stands what the
same arithmetic gives in the ordinary way, and the bound of the paper for one attention layer without skip,

    ||res(SA(X))|| <= (4 H beta / sqrt(d_qk)) ||res(X)||^3,   beta >= ||W_QK,h||_1 ||W_h||_{1,inf},   composite norm,

which is stated for score ranges up to 1.256 only, and says something only where factor * ||res(X)||^2 < 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rankfall.measures import _residual as res
from rankfall.measures.centred.block import step
from rankfall.measures.centred.state import State, begin
from rankfall.nets.network import Network
from rankfall.pretrained.convert import as_network, convertible, first_states
from rankfall.pretrained.subject import Spec, Subject, subjects
from rankfall.pretrained.surgery import Variant

RANGE = 1.256  # exp(t) - 1 <= 2 t up to here


def law(spec: Spec, seeds: Sequence[int], samples: int) -> list[dict[str, Any]]:
    """All rows of a model; none where it has no form in our own blocks."""
    rows: list[dict[str, Any]] = []
    for subject in subjects(spec, seeds):
        if not convertible(subject):
            return []
        start = first_states(subject, 0, min(samples, subject.batch.samples))
        for variant in subject.variants:
            rows += [{**subject.labels(), "variant": variant.name, **row} for row in _variant(subject, variant, start)]
    return rows


@torch.no_grad()
def _variant(subject: Subject, variant: Variant, start: Tensor) -> list[dict[str, Any]]:
    network = as_network(subject, variant)
    states = [begin(network, start)]
    ordinary = [start]
    for block in network.blocks:
        states.append(step(block, states[-1]))
        ordinary.append(block(ordinary[-1]))
    logs = torch.stack([log_relative(state) for state in states])  # (L + 1, B)
    factors = [factor(network, index) for index in range(len(network.blocks))]
    rows = []
    for layer, state in enumerate(states):
        direct = res.relative_residual(ordinary[layer][0])
        absolute = log_absolute(state)
        for sample in range(start.shape[1]):
            bound = condition = reach = None
            if layer < len(network.blocks):
                bound = factors[layer] + 2 * float(absolute[sample])
                reach = float(score_range(network, layer, ordinary[layer][0, sample]))
                condition = reach <= RANGE
            rows.append(
                {
                    "layer": layer,
                    "sample": sample,
                    "log10_residual": float(logs[layer, sample]) / math.log(10),
                    "direct": float(direct[sample]),
                    "exponent": exponent(logs[:, sample], layer),
                    "log10_factor": None if bound is None else factors[layer] / math.log(10),
                    "log10_contraction": None if bound is None else bound / math.log(10),
                    "score_range": reach,
                    "condition": condition,
                    "vacuous": None if bound is None else bound >= 0,
                }
            )
    return rows


def log_absolute(state: State) -> Tensor:
    """log ||res(X)||, composite norm, (B,): at any scale."""
    unit = res.matrix_norm(state.rest.unit[0], "composite")
    return unit.log() + state.rest.log[0]


def log_relative(state: State) -> Tensor:
    """log of ||res(X)|| / ||X||, (B,)."""
    return log_absolute(state) - res.matrix_norm(state.full()[0], "composite").log()


def exponent(logs: Tensor, layer: int) -> float | None:
    """(log r_l+1 - log r_l) / (log r_l - log r_l-1): 3 where a cubic law r' = C r^3 rules, 1 where decay is geometric."""
    if not 1 <= layer < len(logs) - 1:
        return None
    before, after = float(logs[layer] - logs[layer - 1]), float(logs[layer + 1] - logs[layer])
    return after / before if abs(before) > 1e-6 and math.isfinite(before) and math.isfinite(after) else None


def factor(network: Network, index: int) -> float:
    """log of 4 H beta / sqrt(d_qk) of one layer."""
    attention: Any = network.blocks[index].attention
    heads, width = attention.heads, attention.head_width
    query = attention.query.weight[0].view(-1, heads, width).transpose(0, 1)  # (H, D, d)
    key = attention.key.weight[0].view(-1, heads, width).transpose(0, 1)
    scores = query @ key.transpose(-1, -2)  # W_QK,h (H, D, D)
    maps = attention.maps()[0][0]  # W_h (H, D, D)
    beta = (res.matrix_norm(scores, "l1") * res.matrix_norm(maps, "composite")).amax()
    return float((4 * heads * beta / width**0.5).log())


def score_range(network: Network, index: int, state: Tensor) -> Tensor:
    """The largest |E_ij - E_ij'| over heads and rows, E = R W_QK R^T / sqrt(d_qk), of a state (T, D)."""
    attention: Any = network.blocks[index].attention
    rest = res.residual(state)[None]  # (1, T, D)
    query, key = (
        attention.split((rest @ weight)[:, None]) for weight in (attention.query.weight, attention.key.weight)
    )
    scores = query @ key.transpose(-1, -2) * attention.head_width**-0.5
    return (scores.amax(-1) - scores.amin(-1)).amax()
