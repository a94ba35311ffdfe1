"""Measure what remains of the tokens' differences, by layer, in networks of attention alone with random weights, without skips and norms.

Shaped attention adds a token's own value to the output of attention, and subtracts attention without content: 1 + A - C. With queries of
zero A is C, and the layer is the identity. `mixed` is (1 - g) 1 + g A, whose rows still sum to one.
"""

import torch
from torch import Tensor

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.draws import draw, spread
from studies.claims.shaped_attention.names import KEPT, LEAST
from studies.claims.untrained import make

BUILDS = {"mask": ["none", "causal"]}
NAME = "shaped_attention_keeps_rank"
FORMS = ("plain", "shaped, scores of zero", "shaped, random scores", "mixed, a tenth")


def shaped_attention(
    context: Context, *, depth: int = 32, tokens: int = 32, width: int = 64, seeds: int = 5
) -> Evidence:
    """Return the evidence. Value maps are orthogonal and keep every length, so that only attention has an effect."""
    init = {"name": "normal", "deviation": width**-0.5}
    for seed in range(seeds):
        start = draw([seed], 1, tokens, width, name=NAME)
        for mask in ("none", "causal"):
            network = make([seed], tokens, depth=depth, width=width, mask=mask, init=init)
            for form in FORMS:
                x = start
                for layer in range(depth + 1):
                    kept = float(spread(x)[0, 0] / x.norm())
                    value = kept if kept > LEAST else float("nan")
                    yield row(NAME, KEPT, f"{form}, mask {mask}", layer, seed, value, "below rounding")
                    if layer < depth:
                        x = step(network.blocks[layer].attention, x, form)


def step(attention: torch.nn.Module, x: Tensor, form: str) -> Tensor:
    """Return the states after one layer of a form of attention, scaled to their usual size."""
    logits: Tensor = attention.logits(x)[0, 0, 0]  # type: ignore[operator]
    weights = logits.softmax(-1)
    level = torch.where(logits.isneginf(), logits, 0.0).softmax(-1)  # without content
    identity = torch.eye(len(weights), dtype=x.dtype)
    if form == "shaped, scores of zero":
        weights = identity
    elif form == "shaped, random scores":
        weights = identity + weights - level
    elif form == "mixed, a tenth":
        weights = 0.9 * identity + 0.1 * weights
    orthogonal = torch.linalg.qr(attention.value.weight[0]).Q  # type: ignore[union-attr,index]
    x = weights @ x @ orthogonal
    return x / x.norm() * x[0, 0].numel() ** 0.5  # without a norm only directions count, and scores keep their size
