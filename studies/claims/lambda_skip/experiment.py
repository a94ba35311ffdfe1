"""Measure by lambda how much of its relative residual N(lambda X + F(X)) loses per layer, and the residual after the last layer.

F is attention or a state space model, and the loss is that over the second half of the depth. For maps of independent weights and gain one
that see only the mean of tokens, the shared row grows by sqrt(lambda^2 + 1) per layer and the tokens' differences by lambda. So the
residual is multiplied by lambda / sqrt(lambda^2 + 1), for every lambda.
"""

import math

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.draws import draw, log10_residual
from studies.claims.lambda_skip.names import KINDS, LAMBDAS, LOSS, NAME
from studies.claims.parts import XAVIER, slope
from studies.claims.untrained import make

BUILDS = {
    "attention": ["multihead", "selective"],
    "init": ["deepnorm"],
    "mask": ["none", "causal"],
    "norm": ["rms"],
    "residual": ["scaled"],
}
RESIDUAL = "log10 of the relative residual after the last layer, by lambda"
LAW = "attention that averages, in closed form"
APART = 0.01  # relative to the shared row, so that a residual near one hides no loss
FLOOR = 1e-12  # smaller residuals may be rounding in float64


def lambda_skip(
    context: Context, *, depth: int = 128, tokens: int = 16, width: int = 32, heads: int = 2, seeds: int = 5
) -> Evidence:
    for strength in LAMBDAS:
        yield row(NAME, LOSS, LAW, strength, 0, math.log10(strength / math.hypot(strength, 1)))
        for name, fields in KINDS.items():
            for seed in range(seeds):
                network = make(
                    [seed],
                    tokens,
                    residual={"name": "scaled", "scale": strength},
                    norm="rms",
                    init=XAVIER,
                    depth=depth,
                    heads=heads,
                    width=width,
                    **fields,
                )
                x = draw([seed], 1, width, name=f"{NAME} common") + APART * draw([seed], tokens, width, name=NAME)
                x = x.unsqueeze(1)
                residuals = [log10_residual(state, FLOOR) for state in network.layers(network.norm_in(x))]
                seen = [(layer, value) for layer, value in enumerate(residuals) if not math.isnan(value)]
                late = [pair for pair in seen if pair[0] >= seen[-1][0] / 2]
                yield row(NAME, LOSS, name, strength, seed, slope([a for a, _ in late], [b for _, b in late]))
                yield row(NAME, RESIDUAL, name, strength, seed, residuals[-1], "below what float64 resolves")
