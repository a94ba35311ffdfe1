"""Expected order of contraction of res for nearly identical rows, and the reason. X = 1 x^T + R with |R| = eps.

The new R of attention is the difference between rows of P V, V = 1 v^T + R W:

    (row sums of P minus their mean) v  +  (P minus its mean row) R W  +  (weights on sentinels minus their mean) (v_s - v)

In bidirectional attention without position, rows differ only by their queries, q_i - q = O(eps).

- softmax, also with log n, of cosines or over normalised keys, l2, swish with l2, relu^2 over its sum: a score common to a row cancels
  (for the last two, a factor), so rows of P differ by E = R W_QK R^T = O(eps^2), and the second term is O(eps^3). Row sums are 1 for
  softmax. For rows of length one they are largest, hence stationary, at equal weights: with O(eps) scores and O(eps^2) differences between
  rows they differ by O(eps^3). So p = 3.
- softmax - 1/n, whose rows sum to zero: as softmax, except that a mask alone leaves all weights O(eps), and p = 2. In the common row, v
  cancels too, which leaves O(eps^2), or O(eps) where scores depend on the position, and the output bias. Without that bias p is smaller
  by the same exponent.
- exp, sigmoid, relu^2, off-by-one: the query's own O(eps) score changes the row sum. So p = 1.
- A sentinel is a key that differs from the others, so its weight changes with the query by O(eps): p = 1 for all normalisers.
- A mask, a bias or a rotation makes rows of P differ at order one. If rows sum to one and there is no sentinel, the second term is O(eps):
  p = 1. Otherwise outputs differ however similar the rows were: p = 0. Unequal factors of URPE alone have this effect, as do positions
  that act on the values (Shaw et al.). Positions that act on the states are part of R.
- A skip connection passes R on: p is at most 1. Norms of single tokens and MLPs are smooth maps of each row and do not change p.
- A gate (`nets/attentions/gau.py`, `gated.py`) differs between rows by O(eps) and multiplies a term of order one: p is at most 1, for
  softmax too.
- Differential attention has two softmaxes, each with rows that differ by R W R^T and sum to one: as softmax.
- Softpick has rows that sum to one where all scores are positive, and at equal scores a change common to a row cancels: as softmax. The
  case in which a position changes the signs of scores is not worked out.
- Recurrent mixers (`nets/attentions/_recurrent.py`) see earlier tokens only, and their row sums differ between positions: p = 0. If all
  rows have the same sum, p = 1, as with a mask.
- Linear attention (`nets/attentions/linear.py`) has rows of weights that sum to one and whose common factor cancels: as softmax, p = 3.
  Without the quotient row sums depend on the query, p = 1, or on positions, p = 0.
- A norm over tokens (the column form) scales R to order one: p = 0.
"""

from collections.abc import Mapping
from typing import Any

from rankfall.components import facts_of
from rankfall.design import Architecture

BARE = "attention alone"
BLOCKS = {  # name -> residual, norm, norm placement, mlp
    BARE: ("none", "none", "", "none"),
    "MLP": ("none", "none", "", "gelu"),
    "post-norm": ("none", "layer", "post", "none"),
    "pre-norm": ("none", "layer", "pre", "none"),
    "RMS norm": ("none", "rms", "post", "none"),
    "column norm": ("none", "column", "post", "none"),
    "skip": ("add", "none", "", "none"),
    "skip, post-norm": ("add", "layer", "post", "none"),
    "skip, pre-norm": ("add", "layer", "pre", "none"),
    "transformer": ("add", "layer", "post", "gelu"),
    "pre-norm transformer": ("add", "layer", "pre", "gelu"),
    "decoder": ("add", "rms", "pre", "swiglu"),
}


BY_SUMS, BY_FACTORS = "row sums depend on the position", "factors by distance make row sums differ"
TO_ZERO, BY_QUERY = "rows of P sum to zero", "row sums depend on the query"
SAME = "rows of P differ, but not their sums"
DIFFER = {"one": "rows of P differ, but sum to one", "constant": SAME, "zero": SAME}


def expect_order(design: Architecture, biases: bool) -> tuple[int | None, str]:
    """Return the order p of res and the reason in a few words. p is None where it is not worked out, as for a custom normaliser.

    `biases`: whether linear maps have biases.
    """
    attention = facts_of("attention", design.attention.name)
    mixes, gated = attention.get("MIXES"), attention.get("GATED", False)
    if mixes is None:
        return None, "not worked out for this attention"
    if mixes == "scores" and "SHIFT" not in facts_of("normaliser", normaliser_of(design)):
        return None, "not worked out for this normaliser"
    sums = sums_of(design)
    if mixes == "scores" and sums == "free" and attention.get("ROWS") == sums:
        return None, "not worked out for rows of weights that are the attention's own and have any sum"
    if mixes != "scores" and sums == "zero":
        return None, "not worked out for rows that sum to zero without a normaliser"
    if normaliser_of(design) == "softpick":
        if options_of(design).get("eps"):
            return None, "not worked out for a denominator with something added"
        if acts_on(design) - {"states"}:
            return None, "it depends on the signs of the scores, which the position changes"
    if mixes == "features" and sums != "free" and (design.head_width or design.width // (design.heads or 1)) == 1:
        return None, "with one feature a head the query cancels and all rows come out the same"
    order, reason = mixer_order(design, mixes, sums, biases and design.attention.name != "gau")
    # Otherwise the term that the gate multiplies vanishes as well.
    if gated and order > 1 and not reason.startswith(TO_ZERO):
        order, reason = 1, "the gate passes the residual on"
    if design.attention.name == "gau" and reason in (BY_SUMS, BY_FACTORS) and norm_equates_rows(design):
        order, reason = 1, "rows differ by their row sums alone, which the norm removes, and by the gate"
    if design.residual.name != "none" and order > 1:
        order, reason = 1, "the skip connection passes the residual on"
    if design.norm.name == "column":
        return 0, "the norm over tokens scales every residual to one"
    return order, reason


def normaliser_of(design: Architecture) -> str:
    """Return the name of the function that turns scores into weights; empty where there are no scores."""
    fixed: str = facts_of("attention", design.attention.name).get("WEIGHTS", "")
    return fixed if fixed or design.normaliser is None else design.normaliser.name


def options_of(design: Architecture) -> Mapping[str, Any]:
    """Return the options of the normaliser; none where an attention has its own."""
    return {} if design.normaliser is None else design.normaliser.options


def sums_of(design: Architecture) -> str:
    """Return what rows of weights sum to where tokens are equal: as the attention declares or, for `normaliser`, as the normaliser does.

    Scores are then equal, unless a position acts on them.
    """
    name, declared = normaliser_of(design), facts_of("attention", design.attention.name).get("ROWS")
    if declared not in (None, "normaliser"):
        return str(declared)
    facts = facts_of("normaliser", name)
    rows = str(facts.get("ROWS", "free"))
    equal_scores = name == "urpe" or not acts_on(design) - {"states"}  # equal factors of URPE are softmax at any scores
    return str(facts.get("EQUAL_ROWS", rows)) if equal_scores else rows


def norm_equates_rows(design: Architecture) -> bool:
    """Check whether a norm of each token follows that makes multiples of one row equal, the output of a single head without biases."""
    after = design.norm.name in ("layer", "rms") and design.norm_placement == "post" and design.residual.name == "none"
    return after and design.sentinels.name == "none"


def acts_on(design: Architecture) -> set[str]:
    """Return what the position acts on, by default the scores."""
    return set(facts_of("position", design.position.name).get("TOUCHES", ("scores",)))


def mixer_order(design: Architecture, mixes: str, sums: str, biases: bool) -> tuple[int, str]:
    """Return order and reason for a mixer of tokens alone: attention by `scores` and a normaliser; by products of `features`, whose rows of
    weights sum to one or are not normalised; or a recurrence of `states`, in which an output depends on the number of earlier tokens."""
    name, touches = normaliser_of(design), acts_on(design)
    masked, sentinels = design.mask is not None and design.mask.name != "none", design.sentinels.name != "none"
    placed = mixes == "states" or masked or bool(acts_on(design) - {"states"})  # weights depend on the place of a token
    scored = mixes == "scores"
    if scored and "values" in touches:
        return 0, "the position adds to the values"
    if scored and name == "urpe" and options_of(design).get("random"):
        return 0, BY_FACTORS
    if placed and sums == "free":
        return 0, BY_SUMS
    if scored and sums == "zero" and not sentinels:
        order, common = (1, 1) if touches - {"states"} else (2, 2) if placed else (3, 2)
        if biases:
            return order, f"{TO_ZERO}, and the output bias is what rows have in common"
        return order - common, f"{TO_ZERO}, so that what rows have in common vanishes too"
    if placed and sentinels:
        return 0, "the sentinel's weight depends on the position"
    if placed:
        return 1, DIFFER[sums]
    if sentinels:
        return 1, "the sentinel's weight depends on the query"
    # Where all rows have the same sum, equal scores give equal weights at any score, so a shift is of second order.
    if sums == "free" and (not scored or facts_of("normaliser", name)["SHIFT"] == "counts"):
        return 1, BY_QUERY
    if not scored:
        return 3, "rows of P differ by second differences of the logarithm of features' products"
    return 3, "rows of P differ by R W R^T alone"
