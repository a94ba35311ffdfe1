"""Measure the largest difference of a column sum from one in products of maps of four streams, by layers.

Maps are Sinkhorn's in 1, 5 or 20 rounds, of scores of three deviations, or convex sums of the 24 permutations. Rows sum to one in all of
them.
"""

import itertools
import math

import torch
from torch import Tensor

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.draws import identity, standard_normal
from studies.claims.sinkhorn_gaps_accumulate.names import EXACT, GAP, NAME, name_line
from studies.claims.stream_products.maps import sinkhorn

COST = {"seconds": 15}
DEVIATIONS = (1.0, 4.0, 8.0)  # of scores
ROUNDS = (1, 5, 20)  # of Sinkhorn; the source has 20


def sinkhorn_gaps_accumulate(context: Context, *, depth: int = 64, streams: int = 4, seeds: int = 100) -> Evidence:
    shown = {2**k for k in range(30)} | {depth}
    for seed in range(seeds):
        scores = [standard_normal(seed, streams, streams, name=f"{NAME} {layer}") for layer in range(depth)]
        kinds = {
            name_line(deviation, rounds): [sinkhorn(deviation * s, rounds) for s in scores]
            for deviation in DEVIATIONS
            for rounds in ROUNDS
        }
        kinds[EXACT] = [sum_permutations(seed, layer, streams) for layer in range(depth)]
        for line, maps in kinds.items():
            product = identity(streams)
            for layer, matrix in enumerate(maps, 1):
                product = matrix @ product
                if layer in shown:
                    yield row(NAME, GAP, line, layer, seed, log10_gap(product))


def sum_permutations(seed: int, layer: int, streams: int) -> Tensor:
    """Return a convex sum of all permutations (n, n), whose weights are a softmax of normal numbers."""
    orders = list(itertools.permutations(range(streams)))
    weights = standard_normal(seed, len(orders), name=f"{NAME} weights {layer}").softmax(-1)
    return torch.einsum("p,pij->ij", weights, torch.stack([identity(streams)[list(order)] for order in orders]))


def log10_gap(product: Tensor) -> float:
    return math.log10(max(float((product.sum(0) - 1).abs().max()), 1e-16))
