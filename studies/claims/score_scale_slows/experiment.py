"""Measure log10 of the spread of tokens by layer, for scores of three deviations and three masks.

The network is attention with a layer norm and nothing else, and there is no rounding floor.
"""

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.draws import draw
from studies.claims.parts import MASKS, XAVIER
from studies.claims.score_scale_slows.names import NAME, SCALES, SPREAD
from studies.claims.untrained import make, spread_without_rounding

BUILDS = {"init": ["deepnorm"], "mask": ["none", "causal", "local"], "norm": ["layer"], "normaliser": ["score_scale"]}


def score_scale_slows(
    context: Context, *, depth: int = 24, tokens: int = 24, width: int = 64, seeds: int = 12
) -> Evidence:
    for sees, mask in MASKS.items():
        for scale in SCALES:
            for seed in range(seeds):
                network = make(
                    [seed],
                    tokens,
                    mask=mask,
                    norm="layer",
                    depth=depth,
                    width=width,
                    init=XAVIER,
                    normaliser={"name": "score_scale", "scale": "one", "factor": scale},
                )
                # One head and Xavier's maps: normed tokens have scores of deviation one before scaling.
                x = network.norm_in(draw([seed], tokens, width, name=NAME).unsqueeze(1))
                for layer, log in enumerate(spread_without_rounding(network, x)):
                    yield row(NAME, SPREAD, f"{sees}, scores times {scale:g}", layer, seed, float(log))
