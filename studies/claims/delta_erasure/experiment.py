"""Measure the relative residual by layer if a branch F is added, X + F, and if the update also removes the state's part along the branch,

    x <- x - b k (k . x) + F(x),   k = F(x) / |F(x)|

for each token, with b = 1 (erasure) or 2 (reflection), and norms before. Adding makes the row that tokens share grow with depth. Erasure
removes the part of this row along F, and equally the differences of tokens along F.
"""

from functools import partial

from torch import Tensor

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.delta_erasure.names import KINDS, NAME, RESIDUAL
from studies.claims.draws import draw, log10_residual
from studies.claims.parts import PRE_NORM, XAVIER
from studies.claims.untrained import make

BUILDS = {"init": ["deepnorm"], "mask": ["causal"], "mlp": ["relu"], "norm": ["rms"], "residual": ["add"]}
FLOOR = 1e-13  # of a relative residual in float64: smaller values are rounding


def delta_erasure(
    context: Context, *, depth: int = 128, tokens: int = 16, width: int = 32, heads: int = 2, seeds: int = 8
) -> Evidence:
    kept = {0, depth, *(2**k for k in range(30)), *(3 * 2**k for k in range(30))}
    for kind, share in KINDS.items():
        for seed in range(seeds):
            network = make(
                [seed],
                tokens,
                **PRE_NORM | {"norm": "rms", "mlp": "relu", "mask": "causal", "init": XAVIER},
                depth=depth,
                heads=heads,
                width=width,
            )
            for block in network.blocks:
                block.residual = block.mlp_residual = partial(overwrite, share=share)
            x = draw([seed], tokens, width, name=NAME).unsqueeze(1)
            for layer, state in enumerate(network.layers(x)):
                if layer in kept:
                    value = log10_residual(state, FLOOR)
                    yield row(NAME, RESIDUAL, kind, layer, seed, value, "below what float64 resolves")


def overwrite(x: Tensor, branch: Tensor, share: float) -> Tensor:
    """Return the states (..., T, D) after an update that overwrites."""
    k = branch / branch.norm(dim=-1, keepdim=True)
    return x - share * k * (k * x).sum(-1, keepdim=True) + branch
