"""Measure the gain of products of maps between four streams, and what remains of the streams' differences, by layers.

Also measured is how much closer a layer brings streams that already differ little, with a map that depends on them.
"""

import math

from rankfall import Context, Rows
from rankfall import evidence_row as row
from studies.claims.stream_products.maps import free, log10_gains, log10_rates, log10_spread, sinkhorn, stochastic
from studies.claims.stream_products.names import APART, DEVIATIONS, EQUAL, FREE, GAIN, KEPT, OUT, RATE, STOCHASTIC
from studies.claims.untrained import standard_normal

SCALES = (-1, -2, -3, -4, -5, -6)  # log10 of the streams' differences


def stream_products(
    context: Context, *, depth: int = 64, streams: int = 4, width: int = 16, long: int = 20_000, seeds: int = 20
) -> Rows:
    rows: Rows = []
    rates = log10_rates(range(seeds), long, streams, DEVIATIONS)
    for seed in range(seeds):
        for deviation in DEVIATIONS:
            gains = log10_gains(free(seed, layer, streams, deviation) for layer in range(depth))
            rows += [
                row(FREE, GAIN, f"1 + {deviation:g} N", layer, seed, value) for layer, value in enumerate(gains, 1)
            ]
        rows += [row(FREE, RATE, "1 + d N", d, seed, value) for d, value in zip(DEVIATIONS, rates[seed], strict=True)]
        for name, (sharpness, rounds) in STOCHASTIC.items():
            maps = [stochastic(seed, layer, streams, sharpness, rounds) for layer in range(depth)]
            rows += [row(KEPT, GAIN, name, layer, seed, value) for layer, value in enumerate(log10_gains(maps), 1)]
            if rounds > 1:
                rows += [
                    row(EQUAL, APART, name, layer, seed, value) for layer, value in enumerate(log10_spread(maps), 1)
                ]
        rows += order(seed, streams, width)
    return rows


def order(seed: int, streams: int, width: int) -> Rows:
    """Return the evidence on streams 1 x^T + e D (n, width), mixed by a doubly stochastic map of scores that depend on them."""
    common, differences, read = (
        standard_normal(seed, count, width, name=f"streams {part}")
        for count, part in ((1, "common"), (streams, "apart"), (streams, "scores"))
    )
    differences = differences - differences.mean(0, keepdim=True)
    rows = []
    for scale in SCALES:
        s = common + 10.0**scale * differences
        mixed = sinkhorn(s @ read.T / width**0.5 + standard_normal(seed, streams, streams, name="stream map"), 50) @ s
        ratio = float((mixed - mixed.mean(0, keepdim=True)).norm() / differences.norm())
        rows.append(row(EQUAL, OUT, "map of the streams themselves", scale, seed, math.log10(ratio)))
    return rows
