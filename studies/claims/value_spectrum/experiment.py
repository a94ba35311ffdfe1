"""Measure the decades that the relative residual gains in 24 layers X <- X + A X H with H = h 1, by h; and with H of random weights and
gain |h|.

A softmax has the eigenvalue one for the row that all tokens share, and smaller ones for their differences. The shared row is multiplied by
1 + h, the differences by nearly one. So tokens become alike if |1 + h| > 1, and differ more if it is less.
"""

import math
from itertools import product

from rankfall import Context, Evidence, relative_residual
from rankfall import evidence_row as row
from studies.claims.draws import identity, linear_map, standard_normal, unit_deviation
from studies.claims.value_spectrum.names import EIGENVALUES, GAIN, NAME, NORMED, RANDOM, SCALED


def value_spectrum(context: Context, *, depth: int = 24, tokens: int = 16, width: int = 32, seeds: int = 8) -> Evidence:
    for kind, h, seed in product((SCALED, RANDOM, NORMED), EIGENVALUES, range(seeds)):
        yield row(NAME, GAIN, kind, h, seed, growth(kind, h, seed, depth, tokens, width))


def growth(kind: str, h: float, seed: int, depth: int, tokens: int, width: int) -> float:
    """Return the decades that the relative residual gains."""
    x = standard_normal(seed, tokens, width, name=NAME) + standard_normal(seed, 1, width, name=f"{NAME} common")
    start = float(relative_residual(x, norm="frobenius"))
    for layer in range(depth):
        q, k = (
            unit_deviation(x) @ linear_map(seed, width, width, 1.0, f"{NAME} {part} {layer}")
            for part in ("query", "key")
        )
        value = (
            linear_map(seed, width, width, h * h, f"{NAME} value {layer}") if kind == RANDOM else h * identity(width)
        )
        x = x + (q @ k.T * width**-0.5).softmax(-1) @ x @ value
        x = unit_deviation(x) if kind == NORMED else x / x.norm()  # the division by the norm changes no ratio
    return math.log10(float(relative_residual(x, norm="frobenius")) / start)
