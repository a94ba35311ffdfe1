"""Measure the mean cosine of two tokens by layer, in networks and by the recursion, at two scales of scores.

It is the mean over all tokens if every token sees all, and over the last 50 under a causal mask. Also measured is the largest difference of
network and recursion by the number of tokens. Cosines of different networks of width 256 differ by a tenth, so there are many networks.
They are in float32, whose rounding is far smaller.
"""

from itertools import product

from torch import Tensor

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.cosine_recursion.names import BOTH_SEE, COSINE, EARLIER, GAP
from studies.claims.cosine_recursion.network import states
from studies.claims.cosine_recursion.recursion import Regime, cosines
from studies.claims.draws import cosine, like_tokens, unit_deviation

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
) -> Evidence:
    # Networks of a seed have the same weights, for every mask and scale of scores.
    for seed, claim, beta in product(range(seeds), (BOTH_SEE, EARLIER), betas):
        for n in [tokens] if claim == EARLIER else sorted({*lengths, tokens}):
            x = like_tokens(seed, n, width, rho, BOTH_SEE)
            yield from measure_network(claim, Regime(beta), seed, depth, n, n == tokens, x)


def measure_network(claim: str, regime: Regime, seed: int, depth: int, n: int, by_layer: bool, x: Tensor) -> Evidence:
    """Return the evidence on one network of n tokens, and by layer if asked."""
    causal = claim == EARLIER
    seen = slice(-LAST, None) if causal else slice(None)
    layers = states(unit_deviation(x).float(), depth, regime, seed, BOTH_SEE, causal)
    measured = [float(cosine(state[seen].double())) for state in layers]
    predicted = cosines(measured[0], depth, regime)
    pairs = list(zip(measured, predicted, strict=True))
    if not causal:
        yield row(claim, GAP, f"beta {regime.beta:g}", n, seed, max((a - b for a, b in pairs), key=abs))
    for layer, (network, recursion) in enumerate(pairs if by_layer else ()):
        yield row(claim, COSINE, f"beta {regime.beta:g}", layer, seed, network)
        yield row(claim, COSINE, f"recursion, beta {regime.beta:g}", layer, seed, recursion)
