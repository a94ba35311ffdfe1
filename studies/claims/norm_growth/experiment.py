"""Measure the mean square of the entries of a state by layer, and of what layers have added to the input, before training.

Networks are pre-norm with several initialisations, have norms around the branch, or have the weights of the first layer in all layers.
"""

from typing import Any

from rankfall import Context, Evidence, Network
from rankfall import evidence_row as row
from studies.claims.draws import draw
from studies.claims.norm_growth.names import ADDED, AROUND, CURE, SHARED, SIZE, SQUARE, VARIANCE
from studies.claims.parts import PRE_NORM, XAVIER
from studies.claims.untrained import make

BUILDS = {
    "block": ["attention", "peri"],
    "init": ["normal", "deepnorm"],
    "mask": ["none", "causal"],
    "mlp": ["gelu"],
    "norm": ["rms", "by_depth"],
    "residual": ["add", "scheduled"],
}
PRE: dict[str, dict[str, Any]] = {
    "Xavier": {"init": XAVIER},
    "N(0, .02^2)": {"init": "normal"},
    "Xavier, branches by 1/sqrt(2 L)": {
        "init": XAVIER,
        "residual": {"name": "scheduled", "factor": 2**-0.5, "by_layer": 0.0, "by_depth": 0.5},
    },
    CURE: {"init": XAVIER, "norm": {"name": "by_depth", "of": "rms"}},
    SHARED: {"init": XAVIER},
}
PERI: dict[str, dict[str, Any]] = {
    "norms around, Xavier": {"init": XAVIER, "block": "peri"},
    "norms around, N(0, .02^2)": {"init": "normal", "block": "peri"},
}


def norm_growth(
    context: Context, *, depth: int = 256, tokens: int = 16, width: int = 64, heads: int = 4, seeds: int = 8
) -> Evidence:
    kept = {0, 1, 3, *(2**k for k in range(1, 40)), *(3 * 2**k for k in range(1, 40))}
    for line, fields in {**PRE, **PERI}.items():
        about = PRE_NORM | {"norm": "rms", "mlp": "gelu", "mask": "causal"}
        for seed in range(seeds):
            network = make([seed], tokens, **about | fields, depth=depth, heads=heads, width=width)
            if line == SHARED:
                share(network)
            x = draw([seed], tokens, width, name="norm_growth").unsqueeze(1)  # (1, 1, T, D)
            for layer, state in enumerate(network.layers(x)):
                if layer in kept or layer == depth:
                    for claim in (AROUND,) if line in PERI else (VARIANCE, SIZE):
                        yield row(claim, SQUARE, line, layer, seed, float(state.square().mean()))
                        if layer:
                            yield row(claim, ADDED, line, layer, seed, float((state - x).square().mean()))


def share(network: Network) -> None:
    """Give every block the weights of the first."""
    for block in network.blocks[1:]:
        block.load_state_dict(network.blocks[0].state_dict())
