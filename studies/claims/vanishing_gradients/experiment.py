"""Measure the norms of the gradients of a block's weights for tokens 1 x^T + e R, by the size e of the tokens' differences.

The loss is the squared distance of the block's output from random targets. The block has attention and an MLP with skip connections and
norms after.
"""

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.draws import draw
from studies.claims.parts import XAVIER
from studies.claims.untrained import make
from studies.claims.vanishing_gradients.names import GRADIENT, NAME, WEIGHTS

BUILDS = {"init": ["deepnorm"], "mlp": ["gelu"], "norm": ["layer"], "residual": ["add"]}


def vanishing_gradients(
    context: Context,
    *,
    apart: list[float] = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5],
    tokens: int = 8,
    width: int = 32,
    heads: int = 2,
    seeds: int = 5,
) -> Evidence:
    for seed in range(seeds):
        network = make(
            [seed], tokens, init=XAVIER, residual="add", norm="layer", mlp="gelu", heads=heads, width=width
        ).requires_grad_(True)
        x, differences, targets = (
            draw([seed], count, width, name=f"{NAME} {part}").unsqueeze(1)  # (1, 1, T, D)
            for count, part in ((1, "common"), (tokens, "rest"), (tokens, "targets"))
        )
        weights = dict(network.named_parameters())
        for size in apart:
            network.zero_grad()
            (network.run(x + size * differences) - targets).square().sum().backward()  # type: ignore[no-untyped-call]
            for part, name in WEIGHTS.items():
                gradient = weights[name].grad
                assert gradient is not None
                yield row(NAME, GRADIENT, part, size, seed, float(gradient.norm()))
