"""Measure the mean cosine of two tokens after the last layer by the number L of layers.

Networks have branches scaled by 1/sqrt(L), without norms or with norms before, or unscaled branches with norms after.
"""

from typing import Any

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.depth_scaling.names import COSINE, NAME, PLAIN, SCALED
from studies.claims.draws import cosine, draw
from studies.claims.parts import PRE_NORM, XAVIER
from studies.claims.untrained import make

BUILDS = {"init": ["deepnorm"], "mlp": ["relu"], "norm": ["layer", "none"], "residual": ["add", "depth_scaled"]}
FEW = 5  # seeds of the additional lines
KINDS: dict[str, dict[str, Any]] = {
    SCALED: {"residual": "depth_scaled", "norm": "none"},
    "branches by 1/sqrt(L), norms before": PRE_NORM | {"residual": "depth_scaled"},
    PLAIN: {"residual": "add", "norm": "layer"},
}


def depth_scaling(
    context: Context,
    *,
    depths: list[int] = [4, 16, 64, 256, 512],
    tokens: int = 16,
    width: int = 64,
    heads: int = 4,
    seeds: int = 40,
) -> Evidence:
    for kind, fields in KINDS.items():
        for depth in depths:
            for seed in range(seeds if kind == SCALED else min(seeds, FEW)):
                network = make([seed], tokens, init=XAVIER, mlp="relu", depth=depth, heads=heads, width=width, **fields)
                x = draw([seed], tokens, width, name=NAME).unsqueeze(1)
                yield row(NAME, COSINE, kind, depth, seed, float(cosine(network.run(x)).squeeze()))
