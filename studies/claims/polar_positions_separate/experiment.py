"""Scores of random queries and keys, contents by offsets, with rotary and with polar positions.

A pair of rotary coordinates, or one polar coordinate, separates content and place if its scores are a function of the content times one of
the offset: then they are a matrix of rank one. Of whole scores: how many contents have their highest at the same offset.
"""

from typing import Any

import torch
from torch import Tensor

from rankfall import Context, Rows
from rankfall import evidence_row as row
from studies.claims.polar_positions_separate.names import MIXED, NAME, POLAR, ROPE, SAME
from studies.claims.untrained import draw, make

COST = {"seconds": 5}
BUILDS = {"position": ["polar", "rope"]}
SPREADS = {0.0: {}, 1.8: {"spread": 1.8}}  # of the polar angles; uniform ones have 1.8


def polar_positions_separate(
    context: Context, *, contents: int = 200, tokens: int = 65, width: int = 16, seeds: int = 20
) -> Rows:
    rows: Rows = []
    for seed in range(seeds):
        q, k = draw([seed], 2, contents, width, name=NAME)[0]
        for spread, options in SPREADS.items():
            for line, position in ((POLAR, {"name": "polar", **options}), (ROPE, {"name": "rope"})):
                found = scores(make([seed], tokens, position=position, width=width, heads=1).position, q, k, tokens)
                whole = found.sum(-1).argmax(-1)  # the offset of each content's highest score
                rows.append(row(NAME, SAME, line, spread, seed, float(whole.bincount().max() / contents)))
                if not spread:
                    rows += of_coordinates(line, seed, found)
    return rows


def of_coordinates(line: str, seed: int, found: Tensor) -> Rows:
    values = [torch.linalg.svdvals(found[..., part]) for part in range(found.shape[-1])]
    return [row(NAME, MIXED, line, part, seed, float(one[1] / one[0])) for part, one in enumerate(values)]


def scores(position: Any, q: Tensor, k: Tensor, tokens: int) -> Tensor:
    """Return the scores of the middle query with every key (contents, T, parts): all keys of a content are equal, as are its queries."""
    queries, keys = (one[:, None, None, None].expand(-1, 1, 1, tokens, -1) for one in (q, k))
    queries, keys = getattr(position, "points", position.rotate)(queries, keys)
    products = queries[:, 0, 0, tokens // 2, None] * keys[:, 0, 0]  # (contents, T, 2 parts)
    half = products.shape[-1] // 2
    return products[..., :half] + products[..., half:]
