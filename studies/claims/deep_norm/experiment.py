"""Measure gradients of value maps by layer, and the cosine of two tokens after the last layer, in untrained networks of a thousand layers.

They have norms after branches with DeepNorm's skips and initialisation, norms after branches with plain skips and Xavier's, or norms before
branches.
"""

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.deep_norm.names import COSINE, GRADIENT, KINDS, NAME
from studies.claims.draws import cosine, draw
from studies.claims.untrained import make

BUILDS = {"init": ["deepnorm"], "mlp": ["relu"], "norm": ["layer"], "residual": ["add", "deepnorm"]}


def deep_norm(
    context: Context, *, depth: int = 1000, tokens: int = 8, width: int = 32, heads: int = 2, seeds: int = 5
) -> Evidence:
    kept = sorted({1, *(round(depth * share) for share in (0.01, 0.03, 0.1, 0.3, 0.5, 0.8)), depth} - {0})
    for kind, fields in KINDS.items():
        for seed in range(seeds):
            network = make(
                [seed],
                tokens,
                norm="layer",
                mlp="relu",
                depth=depth,
                heads=heads,
                width=width,
                mlp_width=width,
                **fields,
            )
            x, targets = (
                draw([seed], tokens, width, name=f"{NAME} {part}").unsqueeze(1) for part in ("tokens", "targets")
            )
            weights = {layer: network.blocks[layer - 1].attention.value.weight for layer in kept}
            for weight in weights.values():
                weight.requires_grad_(True)
            end = network.norm_out(network.run(network.norm_in(x)))
            (end - targets).square().mean().backward()  # type: ignore[no-untyped-call]
            last = float(weights[depth].grad.norm())
            for layer, weight in weights.items():
                yield row(NAME, GRADIENT, kind, layer, seed, float(weight.grad.norm()) / last)
            yield row(NAME, COSINE, kind, depth, seed, float(cosine(end.detach()).squeeze()))
