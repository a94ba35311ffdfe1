"""Tables of the identity study made by hand: rates of four architectures that fall by a known factor a layer."""

import itertools
from collections.abc import Callable
from typing import Any

import pandas as pd

VARIANTS = ("SAN", "SAN+skip", "SAN+MLP", "transformer")
LEFT = {"SAN": 0.1, "SAN+MLP": 0.2, "SAN+skip": 0.9, "transformer": 0.95}  # a layer
DEPTH = 4


def rates(left: float) -> list[dict[str, Any]]:
    rows = []
    for candidates, distance in itertools.product(("sentence", "distinct", "vocabulary"), ("cosine", "l2")):
        asked = {"candidates": candidates, "distance": distance, "chance": 0.05, "sentences": 9, "tokens": 90}

        def row(layer: Any, name: str, loss: Any, trained: Any, rate: float, asked: Any = asked) -> None:
            about = {"layer": layer, "map": name, "loss": loss, "trained_layer": trained, "rate": rate}
            rows.append(about | {"low": rate - 0.02, "high": rate + 0.02, "epoch": None, "rate_reason": ""} | asked)

        for layer in range(DEPTH + 1):
            row(layer, "naive", None, None, left**layer)
            if layer:
                for name, loss in itertools.product(("linear", "mlp"), ("cosine", "l2")):
                    row(layer, name, loss, layer, left**layer)
        if (candidates, distance) == ("sentence", "cosine"):
            for layer, other in itertools.permutations(range(1, DEPTH + 1), 2):
                row(layer, "linear", "cosine", other, 0.3)
        row(None, "position", None, None, 0.25)
    return rows


def cells(rows_of: Callable[[float], list[dict[str, Any]]]) -> pd.DataFrame:
    rows = []
    for variant, training, seed in itertools.product(VARIANTS, ("init", "converged"), range(2)):
        about = {
            "key": f"{variant} {training} {seed}",
            "task": "sorting",
            "architecture": variant,
            "training": training,
        }
        rows += [about | {"seed": seed, "depth": DEPTH, "status": "done"} | row for row in rows_of(LEFT[variant])]
    return pd.DataFrame(rows).convert_dtypes()
