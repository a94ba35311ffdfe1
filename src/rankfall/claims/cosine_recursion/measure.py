"""Mean cosine of two tokens by layer, in networks and by the recursion, at two scales of scores: of all tokens where all see all, and of
the last 50 where a token sees earlier ones; and the largest difference of both over the number of tokens.

Cosines in different networks of width 256 differ by a tenth, so there are many; in float32, whose rounding is far below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankfall.claims.cosine_recursion.network import states
from rankfall.claims.cosine_recursion.recursion import Regime, cosines
from rankfall.claims.cosines import like_tokens, unit_deviation
from rankfall.claims.rows import row
from rankfall.claims.score_scales.measure import mean_cosine

if TYPE_CHECKING:
    from rankfall.measure.context import Context, Rows

TABLE = "evidence"
NEEDS = "nothing"
BOTH_SEE, EARLIER = "cosine_recursion", "cosine_recursion_causal"
COSINE, GAP = "cosine of two tokens, by layer", "network minus recursion where they differ most, by tokens"
LAST = 50  # tokens, of a causal network


def cosine_recursion(
    context: Context,
    *,
    betas: list[float] = [0.5, 3.0],
    depth: int = 50,
    tokens: int = 256,
    lengths: list[int] = [64, 128],
    width: int = 256,
    rho: float = 0.025,
    seeds: int = 40,
) -> Rows:
    rows: Rows = []
    for claim, causal in ((BOTH_SEE, False), (EARLIER, True)):
        for beta in betas:
            regime = Regime(beta)
            for n in sorted({*lengths, tokens}) if not causal else [tokens]:
                for seed in range(seeds):
                    x = unit_deviation(like_tokens(seed, n, width, rho, f"{claim} {n}")).float()
                    seen = slice(-LAST, None) if causal else slice(None)
                    found = [
                        mean_cosine(state[seen].double()) for state in states(x, depth, regime, seed, claim, causal)
                    ]
                    predicted = cosines(found[0], depth, regime)
                    gaps = [one - other for one, other in zip(found, predicted, strict=True)]
                    if not causal:
                        rows.append(row(claim, GAP, f"beta {beta:g}", n, seed, max(gaps, key=abs)))
                    if n != tokens:
                        continue
                    for layer, (one, other) in enumerate(zip(found, predicted, strict=True)):
                        rows += [
                            row(claim, COSINE, f"beta {beta:g}", layer, seed, one),
                            row(claim, COSINE, f"recursion, beta {beta:g}", layer, seed, other),
                        ]
    return rows
