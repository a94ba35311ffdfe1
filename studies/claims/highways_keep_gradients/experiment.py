"""Measure by the number of layers how much of a gradient reaches the input, and how far apart tokens still are.

The gradient is that of a random linear function of the last state, at the input over that at the last state. Networks of attention and ReLU
MLP have post-norm, the highway block, or DeepNorm's skips and start.
"""

from typing import Any

import torch

from rankfall import Context, Evidence, relative_residual
from rankfall import evidence_row as row
from studies.claims.draws import draw
from studies.claims.highways_keep_gradients.names import APART, DEEPNORM, HIGHWAY, NAME, PASSED, POST
from studies.claims.parts import XAVIER
from studies.claims.untrained import make

COST = {"seconds": 30}
BUILDS = {
    "block": ["highway"],
    "init": ["deepnorm"],
    "mask": ["causal"],
    "mlp": ["relu"],
    "norm": ["layer"],
    "residual": ["add", "deepnorm"],
}
KINDS: dict[str, dict[str, Any]] = {
    POST: {"residual": "add", "init": XAVIER},
    HIGHWAY: {"residual": "add", "init": XAVIER, "block": "highway"},
    DEEPNORM: {"residual": "deepnorm", "init": "deepnorm"},
}


def highways_keep_gradients(
    context: Context,
    *,
    layers: list[int] | tuple[int, ...] = (16, 64, 256, 1024),
    tokens: int = 8,
    width: int = 32,
    heads: int = 2,
    seeds: int = 5,
) -> Evidence:
    members = list(range(seeds))
    x = draw(members, 1, tokens, width, name=NAME)
    function = draw(members, 1, tokens, width, name=f"{NAME} function")
    for line, fields in KINDS.items():
        for depth in layers:
            network = make(
                members, tokens, norm="layer", norm_placement="post", mlp="relu", mask="causal", depth=depth,
                heads=heads, width=width, **fields,
            )  # fmt: skip
            start = x.clone().requires_grad_()
            with torch.enable_grad():
                last = network.run(start)
                (gradient,) = torch.autograd.grad((last * function).sum(), start)
            passed = (gradient.flatten(1).norm(dim=1) / function.flatten(1).norm(dim=1)).log10()
            apart = relative_residual(last.detach(), norm="frobenius").log10().flatten()
            for seed in members:
                yield row(NAME, PASSED, line, depth, seed, float(passed[seed]), "smaller than numbers can be")
                yield row(NAME, APART, line, depth, seed, float(apart[seed]), "smaller than numbers can be")
