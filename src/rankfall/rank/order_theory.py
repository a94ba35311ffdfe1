"""What order of contraction to expect of res near identical rows, and why. X = 1 x^T + R with |R| = eps.

Attention's new R is what differs between rows of P V, V = 1 v^T + R W:

    (row sums of P, less their mean) v  +  (P less its mean row) R W  +  (weights on sentinels, less their mean) (v_s - v)

Bidirectional attention without position sees rows differ only by their queries, q_i - q = O(eps).

- softmax, l2, swish with l2: a score common to a row cancels, so rows of P differ by E = R W_QK R^T = O(eps^2), and the second term is
  O(eps^3). Row sums are 1 for softmax; for rows of length one they are largest, hence stationary, at equal weights: with O(eps) scores
  and O(eps^2) differences between rows they differ by O(eps^3). So p = 3.
- exp, sigmoid, relu^2, off-by-one: the query's own O(eps) score changes the row's sum. So p = 1.
- A sentinel is a key unlike the others, so its weight changes with the query by O(eps): p = 1 for all of them.
- A mask, a bias or a rotation makes rows of P differ at order one. If rows sum to one and no sentinel is there, the second term is O(eps):
  p = 1. If not, rows differ however close they were: p = 0. Unequal factors of URPE do that by themselves.
- A skip connection passes R on: p is at most 1. Norms of single tokens and MLPs are smooth maps of each row: they leave p.
- A norm over tokens (the column form) scales R to order one: p = 0.
"""

from rankfall.design import Architecture

FORGETS_COMMON = ("softmax", "l2", "swish_l2", "urpe")
FEELS_COMMON = ("exp", "sigmoid", "relu2", "softmax_off_by_one")


def expected(design: Architecture) -> tuple[int | None, str]:
    """The order p of res, and the reason in a few words; None for a normaliser of the user's own."""
    if design.normaliser.name not in FORGETS_COMMON + FEELS_COMMON:
        return None, "not worked out for this normaliser"
    order, why = of_attention(design)
    if design.residual.name != "none" and order > 1:
        order, why = 1, "the skip connection passes the residual on"
    if design.norm.name == "column":
        return 0, "the norm over tokens scales every residual to one"
    return order, why


def of_attention(design: Architecture) -> tuple[int, str]:
    """The same for the attention layer alone."""
    name = design.normaliser.name
    placed = design.mask.name != "none" or design.position.name not in ("none", "learned")
    sentinels = design.sentinels.name != "none"
    if name == "urpe" and design.normaliser.options.get("random"):
        return 0, "factors by distance make row sums differ"
    stochastic = name in ("softmax", "urpe")
    if placed and not stochastic:
        return 0, "row sums depend on the place"
    if placed and sentinels:
        return 0, "the sentinel's weight depends on the place"
    if placed:
        return 1, "rows of P differ, but sum to one"
    if sentinels:
        return 1, "the sentinel's weight depends on the query"
    if name in FEELS_COMMON:
        return 1, "row sums depend on the query"
    return 3, "rows of P differ by R W R^T alone"
