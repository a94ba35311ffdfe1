"""Rank and identity on one axis of depth, from tables made by hand: when each is halved, and how they go together."""

import itertools
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from rankfall.overview.together import correlations
from rankfall.overview.together import figure as together
from rankfall.report import style

LEFT = {"SAN": 0.1, "SAN+MLP": 0.2, "SAN+skip": 0.9, "transformer": 0.95}  # architecture -> what a layer leaves
DEPTH = 4


def rates(left: float) -> list[dict[str, Any]]:
    """Return the rows that are shown, and others: of maps of another layer, another loss and other candidates."""
    rows = [("naive", None, None, 0, 1.0), ("position", None, None, None, 0.25)]
    for layer, trained in itertools.product(range(1, DEPTH + 1), repeat=2):
        rows.append(("linear", "cosine", trained, layer, left**layer if layer == trained else 0.3))
        rows.append(("linear", "l2", trained, layer, 0.3))
    same = {"distance": "cosine", "chance": 0.05, "sentences": 9, "tokens": 90, "epoch": None, "rate_reason": ""}
    return [
        {"map": name, "loss": loss, "trained_layer": trained, "layer": layer, "rate": rate, "candidates": candidates}
        | {"low": rate - 0.02, "high": rate + 0.02, **same}
        for name, loss, trained, layer, shown in rows
        for candidates, rate in (("sentence", shown), ("vocabulary", 0.3))
    ]


def cells(rows_of: Callable[[float], list[dict[str, Any]]]) -> pd.DataFrame:
    return pd.DataFrame(
        {"key": f"{name} {training} {seed}", "task": "sorting", "architecture": name, "training": training}
        | {"seed": seed, "depth": DEPTH, "status": "done"}
        | row
        for name, training, seed in itertools.product(LEFT, ("init", "converged"), range(2))
        for row in rows_of(LEFT[name])
    ).convert_dtypes()


def tables() -> dict[str, pd.DataFrame]:
    layers = range(DEPTH + 1)
    residual = {"place": "state", "quantity": "residual", "matrix_norm": "composite", "centre": "mean"}
    rank = {"quantity": "rank", "left_out": "nothing", "attention_head": 0, "tokens": 8, "tolerance": 1e-6}
    share = {"method": "jacobian", "kept_tokens": "all", "quantity": "own share"}
    return {
        "token_identity": cells(rates),
        "residuals": cells(lambda left: [residual | {"layer": n, "value": left**n} for n in layers]),
        "attention_identity": cells(
            lambda left: [rank | {"layer": n, "value": 8 * left ** (n - 1)} for n in layers[1:]]
        ),
        "attribution": cells(lambda left: [share | {"layer": n, "value": left ** (2 * n)} for n in layers[1:]]),
    }


@pytest.mark.long
def test_together_says_at_which_layer_each_is_halved_and_how_they_go_together(tmp_path: Any) -> None:
    with style.apply_style():
        picture = together(tables().__getitem__)
        style.save(picture, tmp_path / "figure.png")
    assert "is 1.00 (init) and 1.00 (converged)" in picture.caption
    assert "2 seeds" in picture.caption and picture.numbers is not None
    init = picture.numbers[picture.numbers.training == "init"]
    half = init.groupby(["architecture", "quantity"])["first layer below half"].first()
    assert [half["SAN", name] for name in ("residual", "rank of T", "identity", "own share")] == [1, 1, 1, 1]
    assert half["SAN+skip", "own share"] == 4 and half["SAN+skip"].drop("own share").isna().all()
    together_go = init[init.quantity == "rank correlation of residual and rank of T"]
    assert together_go["mean"].tolist() == [pytest.approx(1)] and together_go.seeds.tolist() == [2]


@pytest.mark.long
def test_a_residual_of_0_is_in_the_mean() -> None:
    found = tables()
    residuals = found["residuals"]
    lowest = residuals.value.min()
    last = (residuals.architecture == "SAN") & (residuals.layer == DEPTH)
    found["residuals"] = residuals.assign(value=residuals.value.where(~(last & (residuals.seed == 0)), 0.0))
    numbers = together(found.__getitem__).numbers
    assert numbers is not None
    end = numbers[(numbers.quantity == "residual") & (numbers.architecture == "SAN") & (numbers.layer == DEPTH)]
    assert end.seeds.tolist() == [2, 2] and end["mean"].tolist() == pytest.approx([lowest] * 2)


def related(first: list[float], second: list[float]) -> float:
    cell = {"key": "a0", "architecture": "a", "training": "init", "seed": 0}
    frames = [pd.DataFrame({"layer": range(len(line)), "value": line}).assign(**cell) for line in (first, second)]
    return float(correlations(dict(zip("xy", frames)))["mean"].item())


def test_rank_correlation_by_hand() -> None:
    assert related([1, 2, 3, 4], [10, 30, 20, 40]) == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert related([1, 2, 3], [9, 4, 1]) == pytest.approx(-1)
