"""Measure scores of rotated queries and keys by distance, independent normal or equal.

Also measured is how much attention a head without positions can give to its own token, if all tokens differ and if one occurs twice, beside
a head with rotary positions.
"""

import torch

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.draws import draw
from studies.claims.rope_and_distance.names import ALIKE, DIFFER, MEAN, OWN, ROPE, SIZE, TWICE
from studies.claims.untrained import make

BUILDS = {"position": ["rope", "none"]}
DECAY, DIAGONAL = "rope_scores_do_not_decay", "diagonal_heads_need_positions"
DISTANCES = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
SCALES = (1.0, 4.0, 16.0, 64.0, 256.0)


def rope_and_distance(
    context: Context, *, pairs: int = 20000, width: int = 64, tokens: int = 32, seeds: int = 5, most: int = 1024
) -> Evidence:
    for seed in range(seeds):
        rope = make([seed], most + 1, position="rope", width=width).position
        q, k = draw([seed], 2, pairs, width, name="rope_and_distance")[0]
        at = torch.zeros(1, 1, 1, most + 1, width, dtype=torch.float64)
        # Each unit vector, rotated to each place: (d, T, d).
        turned = rope.rotate(at + torch.eye(width, dtype=at.dtype)[:, None], at)[0][0, 0]
        for distance in (d for d in DISTANCES if d <= most):
            # The key is `distance` before the query. Only the difference of places counts.
            moved = q @ turned[:, distance]
            scores = (moved * k).sum(-1) / width**0.5  # (pairs,)
            same = (moved * q).sum(-1) / width**0.5
            yield row(DECAY, MEAN, "independent", distance, seed, float(scores.mean() / scores.std() * pairs**0.5))
            yield row(DECAY, SIZE, "independent", distance, seed, float(scores.std()))
            yield row(DECAY, ALIKE, "mean of queries", distance, seed, float(same.mean()))
        x = draw([seed], tokens, width, name="rope_and_distance tokens")
        twice = x.clone()
        twice[..., -1, :] = twice[..., 0, :]
        networks = {position: make([seed], tokens, width=width, position=position) for position in ("none", "rope")}
        for scale in SCALES:
            for network in networks.values():
                for weight in (network.blocks[0].attention.query.weight, network.blocks[0].attention.key.weight):
                    weight.copy_(torch.eye(width, dtype=weight.dtype) * scale**0.5 / width**0.25)
            differ, shared, turned = (
                networks[position].blocks[0].attention.weights(text[None])[0, 0, 0].diagonal()  # (T,)
                for position, text in (("none", x), ("none", twice), ("rope", twice))
            )
            for line, share in ((DIFFER, differ.min()), (TWICE, shared[0]), (ROPE, turned.min())):
                yield row(DIAGONAL, OWN, line, scale, seed, float(share))
