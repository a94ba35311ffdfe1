"""Measure |dX_L / dW_1| by the number of layers L, for layers of fixed attention weights.

Layers are with and without the mean weight, skip connections and a norm, and with the doubled connections of the published code. X <- a X +
A X W has the derivative R <- a R + A R W. The Frobenius norm of the derivative by the first layer's W is the root mean square of |R_L| for
R_1 = A_1 X_0 Z with Z of independent N(0, 1) entries. `draws` of Z give an unbiased estimate of its square. A layer norm is differentiated
at the state.
"""

import math

from torch import Tensor

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.draws import linear_map, standard_normal, unit_deviation
from studies.claims.gap_gradients.names import GRADIENT, KINDS, NAME
from studies.claims.width_collapse.experiment import orthonormal


def gap_gradients(context: Context, *, depth: int = 10, tokens: int = 64, draws: int = 16, seeds: int = 5) -> Evidence:
    for kind in KINDS:
        for seed in range(seeds):
            norms = derivatives(kind, seed, depth, tokens, draws)
            for layer, norm in enumerate(norms, 1):
                yield row(NAME, GRADIENT, kind, layer, seed, norm / norms[0])


def derivatives(kind: str, seed: int, depth: int, tokens: int, draws: int) -> list[float]:
    """Return |dX_L / dW_1| for L = 1 .. depth."""
    norm = KINDS[kind][3]
    x = orthonormal(seed, tokens) * (tokens**0.5 if norm else 1.0)
    weights = [attention(kind, seed, layer, tokens) for layer in range(1, depth + 1)]
    z = standard_normal(seed, draws, tokens, tokens, name=f"{NAME} direction")
    norms: list[float] = []
    tangent = z
    for layer, a in enumerate(weights, 1):
        w = linear_map(seed, tokens, tokens, 1.0, f"{NAME} value {layer}")
        y = layer_output(kind, a, w, x)
        inner = a @ x @ z if layer == 1 else layer_output(kind, a, w, tangent)  # (draws, T, T), a change of y
        tangent = push_scale_and_norm(kind, y, inner)
        x = scale_and_norm(kind, y)
        norms.append(math.sqrt(float(tangent.square().sum((-2, -1)).mean())))
    return norms


def attention(kind: str, seed: int, layer: int, tokens: int) -> Tensor:
    weights = (math.log(2) ** 0.5 * standard_normal(seed, tokens, tokens, name=f"{NAME} scores {layer}")).softmax(-1)
    return weights - 1 / tokens if KINDS[kind][2] else weights


def layer_output(kind: str, a: Tensor, w: Tensor, x: Tensor) -> Tensor:
    """Return the sum of a layer, before scaling and norm."""
    keep = KINDS[kind][0]
    return keep * x + a @ x @ w


def scale_and_norm(kind: str, y: Tensor) -> Tensor:
    """Apply the scaling and norm that follow the sum y."""
    _, times, _, norm = KINDS[kind]
    return unit_deviation(times * y) if norm else times * y


def push_scale_and_norm(kind: str, y: Tensor, change: Tensor) -> Tensor:
    """Return the change of `outer` for a small change of the sum y."""
    _, times, _, norm = KINDS[kind]
    if not norm:
        return times * change
    centred = y - y.mean(-1, keepdim=True)
    size = centred.square().mean(-1, keepdim=True).sqrt()
    unit, change = centred / size, change - change.mean(-1, keepdim=True)
    return (change - unit * (unit * change).mean(-1, keepdim=True)) / size
