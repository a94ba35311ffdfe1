"""Measure the relative residual by layer of attention with norms and no skip connections, with and without the values of the first layer.

These are mixed into a layer's own values, or added to its output. Also measured is the residual after two layers by the tokens' initial
differences, whose slope is the order of both layers together.

Two layers of softmax attention have 3 x 3 = 9. With V_1 in the values, rows of weights still differ by r^2 only, r the state's residual, so
one layer has r^2 r_1, r_1 the input's: two layers 2 x 3 + 1 = 7. With V_1 beside the output r_1 itself is passed on: 1. Under a causal mask
rows of weights differ at order one, and all have 1.
"""

from typing import Any

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.draws import draw, log10_residual
from studies.claims.parts import ALL_OR_EARLIER as MASKS
from studies.claims.parts import XAVIER
from studies.claims.untrained import make
from studies.claims.value_residuals.names import AFTER, FLOOR, OUTPUTS, PLAIN, RESIDUAL, VALUES

BUILDS = {
    "attention": ["multihead", "value_residual"],
    "init": ["deepnorm"],
    "mask": ["none", "causal"],
    "norm": ["rms", "none"],
}
KINDS: dict[str, Any] = {
    PLAIN: "multihead",
    VALUES: {"name": "value_residual", "where": "values", "share": 0.5},
    OUTPUTS: {"name": "value_residual", "where": "outputs", "share": 0.4},
}
ROUNDING = "below what float64 resolves"
SCALES = (-0.6, -0.8, -1.0, -1.2, -1.4)


def value_residuals(
    context: Context, *, depth: int = 24, tokens: int = 12, width: int = 32, heads: int = 2, seeds: int = 8
) -> Evidence:
    for claim in (VALUES, OUTPUTS):
        for name, attention in {PLAIN: KINDS[PLAIN], "with first values": KINDS[claim]}.items():
            for sees, mask in MASKS.items():
                fields = {"attention": attention, "mask": mask, "init": XAVIER, "heads": heads, "width": width}
                for seed in range(seeds):
                    deep = make([seed], tokens, norm="rms", depth=depth, **fields)
                    x = draw([seed], tokens, width, name="value residuals").unsqueeze(1)
                    line = f"{name}, {sees}"
                    for layer, state in enumerate(deep.layers(deep.norm_in(x))):
                        yield row(claim, RESIDUAL, line, layer, seed, log10_residual(state, FLOOR), ROUNDING)
                    two = make([seed], tokens, depth=2, **fields)
                    mean = x.mean(-2, keepdim=True)
                    for scale in SCALES:
                        near = mean * tokens**0.5 + 10.0**scale * (x - mean)
                        yield row(claim, AFTER, line, scale, seed, log10_residual(two.run(near), FLOOR), ROUNDING)
