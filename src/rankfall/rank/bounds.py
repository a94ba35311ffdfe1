"""Bounds of the theorems on the residual, evaluated on the actual weights and states (Dong et al. 2021; notation as there).

For a layer of plain softmax attention (no skip, norm, mask, or position in the scores), with R = res(X) of T tokens, E_h = R W_QK,h R^T
/ sqrt(d), D_i = range of row i of E_h, and composite norm |A| = sqrt(|A|_1 |A|_inf):

    condition       max_i D_i <= 1.256                                                       (e^t - 1 <= 2 t up to this t)
    lemma           |res(SA(X))| <= factor |R|^3,    factor = 4 gamma beta H lambda / sqrt(d),    beta = max_h |W_QK,h|_1 |W_h|
    gamma           max_h sqrt( sum_i D_i / (2 |E_h|_1) )                     needed by the published proof, missing in its first version
    contraction     factor |R|^2, by which the lemma multiplies |R|; if it is 1 or more the lemma is vacuous
    lemma, proven   2 (1 - 1/T) lambda sqrt( sum_h 4 |E_h|_1 |R|_1 |W_h|_1 * sum_h 4 max|E_h| |R|_inf |W_h|_inf )     needs no gamma
    theorem         factor^((3^L - 1) / 2) |res(X_0)|^(3^L), factor the largest up to layer L
    contracts       factor |res(X_0)|^2 < 1                                                   where the theorem gives a decreasing bound

lambda is a Lipschitz constant of the layer's MLP in both operator norms, |W_1| |W_2| max|f'|; 1 without an MLP. All sizes are log10.

The published statements are about the x that minimises |X - 1 x^T|. The measured residuals use the token mean instead, for which |X - 1
x^T| is never smaller and at most 2 (1 - 1/T) times as large (the row and column sum norm of I - 11^T/T). The proven bound includes this
factor; the published bounds are evaluated as published. Proof of the proven bound: with q the softmax of the part of the scores that all
rows share, SA(X) is equal rows plus M = sum_h (P_h - 1 q_h^T) R W_h. Under the condition |P_ij - q_j| <= 2 q_j sum_k q_k |E_ij - E_ik|,
so |P - 1 q^T|_1 <= 4 |E|_1 and |P - 1 q^T|_inf <= 4 max|E|. An MLP maps equal rows to equal rows, and increases differences by at most a
factor lambda. The composite norm has no triangle inequality, so heads are summed in each of the two norms. The published lemma's factor
H does not need this, and follows from it for a single head only (with gamma = 1).
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rankfall.nets.attentions.multihead import Multihead
from rankfall.nets.blocks.attention import Attention as Block
from rankfall.nets.mlps._mlp import Mlp
from rankfall.nets.norms.none import none as no_norm
from rankfall.nets.residuals.none import none as no_residual
from rankfall.rank.centred.assumptions import keeps_form, unbound
from rankfall.rank.centred.attention import FORM, step
from rankfall.rank.centred.scaled import Scaled, State, rescale
from rankfall.rank.centred.scores import scores
from rankfall.rank.centred.weights import sums_to_one
from rankfall.rank.powers import outside
from rankfall.rank.residual import matrix_norm

STEEPEST: dict[Any, float] = {functional.relu: 1.0, functional.gelu: 1.1289042}  # largest slope of each activation
LIMIT = 1.256  # largest range of a row of scores at which e^t - 1 <= 2 t still holds


# Columns defined only where the layer's condition holds.
ONE_LAYER = (
    "log10_factor",
    "log10_contraction",
    "vacuous",
    "log10_lemma",
    "lemma_slack",
    "log10_lemma_no_gamma",
    "lemma_no_gamma_slack",
    "log10_proven",
    "proven_slack",
)
# Columns defined only where the condition holds in every layer so far.
ALL_LAYERS = ("log10_theorem", "theorem_slack", "log10_theorem_no_gamma", "theorem_no_gamma_slack", "theorem_contracts")
WIDE_HERE = f"scores of a row spread over more than {LIMIT}: no bound"
WIDE_BEFORE = f"scores of a row spread over more than {LIMIT} in a layer before: no bound over all layers"


def refusal(block: Any, state: State) -> str:
    """Return the reason why the theorems do not apply to this block; empty where they do."""
    if not keeps_form(block, Block, "forward"):
        return "a block that the theorems do not speak of: not covered"
    return refusal_of_attention(block, state)


def refusal_of_attention(block: Any, state: State) -> str:
    """Return the reason why the theorems do not apply to the parts of a block, which may be taken out of it; empty where they do."""
    if not keeps_form(block.attention, Multihead, *FORM):
        return "an attention that the theorems do not speak of: not covered"
    if unbound(block.residual)[0] is not no_residual or (
        block.mlp is not None and unbound(block.mlp_residual)[0] is not no_residual
    ):
        return "a skip connection: no upper bound holds"
    if unbound(block.norm1)[0] is not no_norm:
        return "a norm: not covered"
    if len(state.others):
        return "a sentinel: not covered"
    if not sums_to_one(block.attention.normaliser):
        return "rows of P do not sum to one"
    if scores(block.attention, state) is None:
        return "scores that depend on the position: not covered"
    if block.mlp is not None and not (isinstance(block.mlp, Mlp) and block.mlp.activation in STEEPEST):
        return "an MLP of unknown Lipschitz constant"
    return ""


def bounds(block: Any, state: State, log10_residual: Tensor) -> tuple[dict[str, Any], Tensor, Tensor]:
    """Return the bounds on one layer for its input state as columns (K, B), with their excess over the layer's residual; the log10 of the
    factor without gamma; and that of lambda. `refusal` must be empty. Rows must pass through `withhold`."""
    attention = block.attention
    parts = scores(attention, state)
    assert parts is not None  # `refusal` is empty
    e, heads, width = parts.both, attention.heads, attention.head_width
    ranges = e.unit.amax(-1) - e.unit.amin(-1)  # (K, B, H, T), at the scale of E
    e_l1, e_max = matrix_norm(e.unit, "l1"), e.unit.abs().amax((-2, -1))  # (K, B, H)
    gamma = (ranges.sum(-1) / (2 * e_l1.clamp_min(1e-300))).sqrt().amax(-1)  # (K, B)
    maps = attention.maps()[0]  # W_h (K, H, D, D)
    # (K, D, H*d) -> (K, H, D, d)
    query, key = (m.weight.unflatten(-1, (heads, -1)).transpose(1, 2) for m in (attention.query, attention.key))
    query_key = query @ key.transpose(-1, -2)  # W_QK,h (K, H, D, D)
    beta = (matrix_norm(query_key, "l1") * matrix_norm(maps, "composite")).amax(-1)  # (K,)
    lipschitz = mlp_lipschitz(block.mlp).to(beta)  # (K,) or ()
    log_beta = beta.log10().unsqueeze(1).expand_as(gamma)
    log_lipschitz = lipschitz.log10().reshape(-1, 1).expand_as(gamma)
    r, r_l1, r_inf = (log10_norm(state.rest, norm) for norm in ("composite", "l1", "linf"))
    log_e = e.log / math.log(10)
    first = (e_l1 * matrix_norm(maps, "l1").unsqueeze(1)).sum(-1).log10() + log_e + r_l1
    second = (e_max * matrix_norm(maps, "linf").unsqueeze(1)).sum(-1).log10() + log_e + r_inf
    tokens = max(2, ranges.shape[-1])  # a single token has R = 0, whatever the factor
    score_range = ranges.amax((-2, -1)) * e.log.exp()  # max_i D_i over heads
    factor_no_gamma = math.log10(4 * heads / width**0.5) + log_beta + log_lipschitz
    factor = factor_no_gamma + gamma.log10()
    columns = {
        "theory_applies": True,
        "theory_reason": "",
        "score_range": score_range,
        "condition": score_range <= LIMIT,
        "log10_beta": log_beta,
        "gamma": gamma,
        "log10_factor": factor,
        "log10_contraction": factor + 2 * r,
        "vacuous": factor + 2 * r >= 0,
    }
    proven = math.log10(8 * (1 - 1 / tokens)) + 0.5 * (first + second) + log_lipschitz
    for name, bound in {"lemma": factor + 3 * r, "lemma_no_gamma": factor_no_gamma + 3 * r, "proven": proven}.items():
        columns |= {f"log10_{name}": bound, f"{name}_slack": slack(bound, log10_residual)}
    return columns, factor_no_gamma, log_lipschitz


def leave_theory_empty(reason: str) -> dict[str, Any]:
    """Return the columns of a layer to which no theorem applies."""
    return {"theory_applies": False, "theory_reason": reason}


def withhold(row: dict[str, Any]) -> dict[str, Any]:
    """Remove from a sample's row the bounds whose condition fails there, and add the reason."""
    if not row["theory_applies"] or (row["condition"] and row.get("condition_all", True)):
        return row
    names, reason = (ALL_LAYERS, WIDE_BEFORE) if row["condition"] else (ONE_LAYER + ALL_LAYERS, WIDE_HERE)
    return row | {name: None for name in names if name in row} | {"theory_reason": reason}


def slack(log10_bound: Tensor, log10_residual: Tensor) -> Tensor:
    """Return right side over left side as log10; NaN where logs are so large that their rounding hides the difference."""
    difference = log10_bound - log10_residual
    known = difference.abs() > 1e3 * torch.finfo(difference.dtype).eps * log10_residual.abs()
    return torch.where(known, difference, torch.nan)


def theorem(factor: Tensor, log10_start: Tensor, layers: int) -> Tensor:
    """Return log10 of the bound after `layers` layers, from the log10 of the largest factor so far and of the input's residual."""
    return (3.0**layers - 1) / 2 * factor + 3.0**layers * log10_start


def mlp_lipschitz(mlp: Any) -> Tensor:
    """Return lambda (K,) with |f(X) - f(Y)| <= lambda |X - Y| in the composite norm, since this holds in both of its parts."""
    if mlp is None:
        return torch.ones(())
    inner, outer = mlp.inner.weight, mlp.outer.weight
    parts = [matrix_norm(inner, name) * matrix_norm(outer, name) for name in ("l1", "linf")]
    return STEEPEST[mlp.activation] * (parts[0] * parts[1]).sqrt()


def log10_norm(x: Scaled, norm: str) -> Tensor:
    """Return log10 of a norm (K, B); -inf for zero."""
    return matrix_norm(x.unit, norm).log10() + x.log / math.log(10)


STEP = 0.1  # R is reduced by this, in natural logarithms,
SHARE = 1e-6  # or by this share of log|R| if larger, since the change must exceed the rounding of a large logarithm
OUT = outside(torch.float64)


def exponent(block: Any, before: State, after: State) -> Tensor:
    """Return d log|R out| / d log|R in| (K, B), by making R slightly smaller."""
    step_down = (SHARE * before.rest.log.abs()).clamp_min(STEP)
    smaller = step(block, rescale(before, before.rest.log - step_down))
    change = log10_norm(after.rest, "composite") - log10_norm(smaller.rest, "composite")
    return change * math.log(10) / step_down


def pick(value: Any, sample: int) -> Any:
    """Return an entry of a tensor (1, B) as a plain number, null where it is not finite. Any other value is returned as it is."""
    if not isinstance(value, Tensor):
        return value
    number = value[0, sample].item()
    return number if isinstance(number, bool) or math.isfinite(number) else None


def none_reason(log10_residual: Tensor) -> str:
    """Return the reason why a residual has no logarithm; empty where it has one."""
    if math.isfinite(log10_residual):
        return ""
    return "rows are identical to the last digit" if log10_residual == -math.inf else OUT
