"""Measure the largest weight of a row of n scores, all -2 except one that is larger by a gap, with and without the scale s log n.

Also measured is how far sigmoid attention shifted by -log n is from softmax attention, for normal scores of several sizes.
"""

import math

import torch

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.draws import draw
from studies.claims.length_and_scale.names import LARGEST, OFF, SUM
from studies.claims.untrained import make

BUILDS = {"normaliser": ["softmax", "score_scale", "sigmoid"]}
PEAK, SIGMOID = "log_n_scale_keeps_the_peak", "sigmoid_matches_softmax"
FACTOR = 0.43  # of the source's example
GAPS = (1.0, 2.0, 3.0, 5.0)
NUMBERS = (10, 100, 1000, 10_000, 100_000, 1_000_000)
AT = (16, 64, 256, 1024)
SIZES = {"scores of size 0.1": 0.1, "scores of size 1": 1.0, "scores of size 3": 3.0}


def length_and_scale(
    context: Context,
    *,
    numbers: list[int] | tuple[int, ...] = NUMBERS,
    tokens: list[int] | tuple[int, ...] = AT,
    width: int = 32,
    seeds: int = 5,
) -> Evidence:
    plain = make([0], 2).blocks[0].attention.normaliser
    scaled = (
        make([0], 2, normaliser={"name": "score_scale", "scale": "log_n", "factor": FACTOR})
        .blocks[0]
        .attention.normaliser
    )
    sigmoid = make([0], 2, normaliser="sigmoid").blocks[0].attention.normaliser
    for seed in range(seeds):
        for gap in GAPS:
            for number in numbers:
                scores = torch.full((1, 1, 1, 1, number), -2.0, dtype=torch.float64)
                scores[..., 0] += gap
                for line, normaliser in (("softmax", plain), ("softmax of scores times 0.43 log n", scaled)):
                    yield row(PEAK, LARGEST, f"{line}, gap {gap:g}", number, seed, float(normaliser(scores).max()))
        for number in tokens:
            scores = draw([seed], 1, 1, number, number, name="length_and_scale scores")
            values = draw([seed], 1, 1, number, width, name="length_and_scale values")
            for line, size in SIZES.items():
                soft = plain(size * scores) @ values
                for name, weights in (
                    ("shift -log n", sigmoid(size * scores)),
                    ("no shift", sigmoid(size * scores + math.log(number))),
                ):
                    off = float((weights @ values - soft).norm() / soft.norm())
                    yield row(SIGMOID, OFF, f"{line}, {name}", number, seed, off)
                    yield row(SIGMOID, SUM, f"{line}, {name}", number, seed, float(weights.sum(-1).mean()))
