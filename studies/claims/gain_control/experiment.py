"""Measure the mean cosine of two tokens over a hundred layers, with and without the sequence mean in the output of attention.

Norms are before or after, and cosines are those of networks and of the recursion. A variant without attention shows what attention
contributes.
"""

from dataclasses import replace

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.cosine_recursion.network import states
from studies.claims.cosine_recursion.recursion import Regime, cosines
from studies.claims.draws import cosine, like_tokens, unit_deviation
from studies.claims.gain_control.names import COSINE, NAME, STRONG

# Values of variance one and without bias, as in the published recursion.
VARIANTS = {
    "norms after": Regime(0.1, value=1.0, value_bias=0.0),
    "norms before": Regime(0.1, value=1.0, value_bias=0.0, pre=True),
    "mean off, norms after": Regime(0.1, value=1.0, value_bias=0.0, centred=True),
    "mean off, norms before": Regime(0.1, value=1.0, value_bias=0.0, pre=True, centred=True),
    "no attention, norms after": Regime(0.1, value=0.0, value_bias=0.0),
}


def gain_control(
    context: Context, *, depth: int = 100, tokens: int = 128, width: int = 192, rho: float = 0.2, seeds: int = 5
) -> Evidence:
    for seed in range(seeds):  # outermost: networks of a seed have the same weights
        x = unit_deviation(like_tokens(seed, tokens, width, rho, NAME))
        for name, regime in VARIANTS.items():
            for quantity, beta in ((COSINE, regime.beta), (STRONG, 3.0)):
                chosen = replace(regime, beta=beta)
                measured = [float(cosine(state)) for state in states(x, depth, chosen, seed, NAME)]
                predicted = cosines(measured[0], depth, chosen)
                for layer, (network, recursion) in enumerate(zip(measured, predicted, strict=True)):
                    yield row(NAME, quantity, name, layer, seed, network)
                    yield row(NAME, quantity, f"recursion, {name}", layer, seed, recursion)
