"""Measure the distance of eight layers X + softmax(X Q K^T X^T) X V, whose weights are multiplied by eta, from a single layer, by eta.

The single layer has the mean as its weights and the sum of all V: to first order in eta this is what all layers do. Other lines compare
with no layer, S'(X) = X, and have norms before.
"""

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.draws import linear_map, standard_normal, unit_deviation
from studies.claims.layer_collapse.names import ERROR, NAME, NONE, NORMED, ONE

ETAS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)


def layer_collapse(context: Context, *, depth: int = 8, tokens: int = 16, width: int = 32, seeds: int = 5) -> Evidence:
    for eta in ETAS:
        for seed in range(seeds):
            x = standard_normal(seed, tokens, width, name=NAME)
            for normed in (False, True):
                deep, total = x, 0 * x.T @ x
                for layer in range(depth):
                    q, k, v = (
                        eta * linear_map(seed, width, width, 1.0, f"{NAME} {part} {layer}")
                        for part in ("query", "key", "value")
                    )
                    y = unit_deviation(deep) if normed else deep
                    deep = deep + ((y @ q) @ (y @ k).T).softmax(-1) @ y @ v
                    total = total + v
                single = x + (unit_deviation(x) if normed else x).mean(0, keepdim=True) @ total
                yield row(NAME, ERROR, NORMED if normed else ONE, eta, seed, float((deep - single).norm() / x.norm()))
                if not normed:
                    yield row(NAME, ERROR, NONE, eta, seed, float((deep - x).norm() / x.norm()))
