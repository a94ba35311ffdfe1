"""The theorems' bounds on the residual, evaluated on the weights and states at hand (Dong et al. 2021; notation as there).

For a layer of plain softmax attention (no skip, norm, mask, or position in the scores), with R = res(X), E_h = R W_QK,h R^T / sqrt(d),
D_i = range of row i of E_h, and composite norm |A| = sqrt(|A|_1 |A|_inf):

    condition       max_i D_i <= 1.256                                                       (e^t - 1 <= 2 t up to there)
    lemma           |res(SA(X))| <= 4 gamma beta H lambda / sqrt(d) |R|^3,    beta = max_h |W_QK,h|_1 |W_h|
    gamma           max_h sqrt( sum_i D_i / (2 |E_h|_1) )                     what the published proof needs and its first version left out
    lemma, proven   lambda sqrt( sum_h 4 |E_h|_1 |R|_1 |W_h|_1 * sum_h 4 max|E_h| |R|_inf |W_h|_inf )         needs no gamma
    theorem         (4 gamma beta H lambda / sqrt(d))^((3^L - 1) / 2) |res(X_0)|^(3^L), beta, gamma, lambda the largest up to layer L
    contracts       |res(X_0)|^2 < sqrt(d) / (4 gamma beta H lambda)                          where the theorem says anything at all

lambda is a Lipschitz constant of the layer's MLP in both operator norms, |W_1| |W_2| max|f'|; 1 without an MLP. All sizes as log10.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rankfall.measures._residual import matrix_norm
from rankfall.measures.centred.scaled import Scaled
from rankfall.measures.centred.scores import scores
from rankfall.measures.centred.state import State
from rankfall.measures.centred.weights import sums_to_one
from rankfall.nets.mlps._mlp import Mlp
from rankfall.nets.norms.none import none as no_norm
from rankfall.nets.residuals.none import none as no_residual

STEEPEST: dict[Any, float] = {functional.relu: 1.0, functional.gelu: 1.1289042}  # largest slope of an activation
LIMIT = 1.256


@dataclass(frozen=True)
class Bounds:
    """One layer's terms, each (K, B)."""

    log10_beta: Tensor
    gamma: Tensor
    log10_lipschitz: Tensor
    score_range: Tensor  # max_i D_i over heads
    log10_factor: Tensor  # log10 of 4 gamma beta H lambda / sqrt(d)
    log10_lemma: Tensor
    log10_proven: Tensor


def refusal(block: Any, state: State) -> str:
    """Why the theorems say nothing of this block; empty where they do."""

    def is_(function: Any, wanted: Any) -> bool:
        return function is wanted or getattr(function, "func", None) is wanted

    if not is_(block.residual, no_residual) or (block.mlp is not None and not is_(block.mlp_residual, no_residual)):
        return "a skip connection: no upper bound holds"
    if not is_(block.norm1, no_norm):
        return "a norm: not covered"
    if len(state.others):
        return "a sentinel: not covered"
    if not sums_to_one(block.attention.normaliser):
        return "rows of P do not sum to one"
    if scores(block.attention, state) is None:
        return "scores that depend on the place: not covered"
    if block.mlp is not None and not (isinstance(block.mlp, Mlp) and block.mlp.activation in STEEPEST):
        return "an MLP of unknown Lipschitz constant"
    return ""


def bounds(block: Any, state: State) -> Bounds:
    """The terms of one layer, for the state that enters it; `refusal` must be empty."""
    attention = block.attention
    apart = scores(attention, state)
    assert apart is not None
    e, heads, width = apart.both, attention.heads, attention.head_width
    ranges = e.unit.amax(-1) - e.unit.amin(-1)  # (K, B, H, T), at the scale of E
    e_one, e_max = matrix_norm(e.unit, "l1"), e.unit.abs().amax((-2, -1))  # (K, B, H)
    gamma = (ranges.sum(-1) / (2 * e_one.clamp_min(1e-300))).sqrt().amax(-1)  # (K, B)
    maps = attention.maps()[0]  # W_h (K, H, D, D)
    query, key = (split_columns(m.weight, heads) for m in (attention.query, attention.key))  # (K, H, D, d)
    query_key = query @ key.transpose(-1, -2)  # W_QK,h (K, H, D, D)
    beta = (matrix_norm(query_key, "l1") * matrix_norm(maps, "composite")).amax(-1)  # (K,)
    lipschitz = mlp_lipschitz(block.mlp).to(beta)  # (K,) or ()
    log_beta = beta.log10().unsqueeze(1).expand_as(gamma)
    log_lipschitz = lipschitz.log10().reshape(-1, 1).expand_as(gamma)
    factor = math.log10(4 * heads / width**0.5) + gamma.log10() + log_beta + log_lipschitz
    r_one, r_inf = log10_norm(state.rest, "l1"), log10_norm(state.rest, "linf")
    log_e = e.log / math.log(10)
    first = (e_one * matrix_norm(maps, "l1").unsqueeze(1)).sum(-1).log10() + log_e + r_one
    second = (e_max * matrix_norm(maps, "linf").unsqueeze(1)).sum(-1).log10() + log_e + r_inf
    return Bounds(
        log10_beta=log_beta,
        gamma=gamma,
        log10_lipschitz=log_lipschitz,
        score_range=(ranges.amax((-2, -1)) * e.log.exp()),
        log10_factor=factor,
        log10_lemma=factor + 3 * log10_norm(state.rest, "composite"),
        log10_proven=math.log10(4) + 0.5 * (first + second) + log_lipschitz,
    )


def theorem(factor: Tensor, log10_start: Tensor, layers: int) -> Tensor:
    """log10 of the bound after so many layers, from the largest factor so far and the residual of the input."""
    return (3.0**layers - 1) / 2 * factor + 3.0**layers * log10_start


def mlp_lipschitz(mlp: Any) -> Tensor:
    """(K,): |f(X) - f(Y)| <= lambda |X - Y| in the composite norm, because it holds in both of its parts."""
    if mlp is None:
        return torch.ones(())
    inner, outer = mlp.inner.weight, mlp.outer.weight
    parts = [matrix_norm(inner, name) * matrix_norm(outer, name) for name in ("l1", "linf")]
    return STEEPEST[mlp.activation] * (parts[0] * parts[1]).sqrt()


def log10_norm(x: Scaled, norm: str) -> Tensor:
    """(K, B); -inf for a zero."""
    return matrix_norm(x.unit, norm).log10() + x.log / math.log(10)


def split_columns(weight: Tensor, heads: int) -> Tensor:
    """(K, D, H*d) -> (K, H, D, d)"""
    return weight.unflatten(-1, (heads, -1)).transpose(1, 2)
