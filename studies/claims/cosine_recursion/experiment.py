"""Mean cosine of two tokens by layer, in networks and by the recursion, at two scales of scores: of all tokens if all see all, and of the
last 50 under a causal mask; and the largest difference of both over the number of tokens.

Cosines in different networks of width 256 differ by a tenth, so there are many networks, in float32, whose rounding is far smaller.
"""

from torch import Tensor

from rankfall import Context, Rows
from rankfall import evidence_row as row
from studies.claims.cosine_recursion.names import BOTH_SEE, COSINE, EARLIER, GAP
from studies.claims.cosine_recursion.network import states
from studies.claims.cosine_recursion.recursion import Regime, cosines
from studies.claims.untrained import cosine, like_tokens, unit_deviation

LAST = 50  # tokens, of a causal network


def cosine_recursion(
    context: Context,
    *,
    betas: list[float] = [0.5, 3.0],
    depth: int = 50,
    tokens: int = 512,
    lengths: list[int] = [64, 256],
    width: int = 256,
    rho: float = 0.025,
    seeds: int = 24,
) -> Rows:
    # Networks of a seed have the same weights, for every mask and scale of scores.
    return [
        one
        for seed in range(seeds)
        for claim in (BOTH_SEE, EARLIER)
        for beta in betas
        for n in ([tokens] if claim == EARLIER else sorted({*lengths, tokens}))
        for one in of_network(
            claim, Regime(beta), seed, depth, n, n == tokens, like_tokens(seed, n, width, rho, BOTH_SEE)
        )
    ]


def of_network(claim: str, regime: Regime, seed: int, depth: int, n: int, by_layer: bool, x: Tensor) -> Rows:
    causal = claim == EARLIER
    seen = slice(-LAST, None) if causal else slice(None)
    made = states(unit_deviation(x).float(), depth, regime, seed, BOTH_SEE, causal)
    found = [float(cosine(state[seen].double())) for state in made]
    predicted = cosines(found[0], depth, regime)
    pairs = list(zip(found, predicted, strict=True))
    rows: Rows = []
    if not causal:
        rows.append(row(claim, GAP, f"beta {regime.beta:g}", n, seed, max((a - b for a, b in pairs), key=abs)))
    for layer, (one, other) in enumerate(pairs if by_layer else ()):
        rows.append(row(claim, COSINE, f"beta {regime.beta:g}", layer, seed, one))
        rows.append(row(claim, COSINE, f"recursion, beta {regime.beta:g}", layer, seed, other))
    return rows
