"""Measure how scores of random queries and keys depend on content and offset, with rotary and with polar positions.

A pair of rotary coordinates, or one polar coordinate, separates content and place if its scores are a function of the content times one of
the offset: as a matrix of contents by offsets, they then have rank one. For whole scores, measured is how many contents have their highest
score at the same offset.
"""

from typing import Any

import torch
from torch import Tensor

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.draws import draw
from studies.claims.polar_positions_separate.names import MIXED, NAME, POLAR, ROPE, SAME
from studies.claims.untrained import make

COST = {"seconds": 5}
BUILDS = {"position": ["polar", "rope"]}
SPREADS = {0.0: {}, 1.8: {"spread": 1.8}}  # of the polar angles; uniform ones have 1.8


def polar_positions_separate(
    context: Context, *, contents: int = 200, tokens: int = 65, width: int = 16, seeds: int = 20
) -> Evidence:
    for seed in range(seeds):
        q, k = draw([seed], 2, contents, width, name=NAME)[0]
        for spread, options in SPREADS.items():
            for line, position in ((POLAR, {"name": "polar", **options}), (ROPE, {"name": "rope"})):
                products = scores(make([seed], tokens, position=position, width=width, heads=1).position, q, k, tokens)
                best_offsets = products.sum(-1).argmax(-1)  # the offset of each content's highest score
                yield row(NAME, SAME, line, spread, seed, float(best_offsets.bincount().max() / contents))
                if not spread:
                    yield from measure_coordinates(line, seed, products)


def measure_coordinates(line: str, seed: int, products: Tensor) -> Evidence:
    """Return the evidence on each part of scores (contents, T, parts): the second singular value over the first."""
    for part in range(products.shape[-1]):
        s = torch.linalg.svdvals(products[..., part])
        yield row(NAME, MIXED, line, part, seed, float(s[1] / s[0]))


def scores(position: Any, q: Tensor, k: Tensor, tokens: int) -> Tensor:
    """Return the scores of the middle query with every key (contents, T, parts): all keys of a content are equal, as are its queries."""
    queries, keys = (x[:, None, None, None].expand(-1, 1, 1, tokens, -1) for x in (q, k))
    queries, keys = getattr(position, "points", position.rotate)(queries, keys)
    products = queries[:, 0, 0, tokens // 2, None] * keys[:, 0, 0]  # (contents, T, 2 parts)
    half = products.shape[-1] // 2
    return products[..., :half] + products[..., half:]
