"""Rank and identity on one axis of depth, from tables made by hand: when each is halved, and how they go together."""

from typing import Any

import pandas as pd
import pytest
from identity_rows import DEPTH, cells, rates

from rankfall.overview.together import correlations
from rankfall.overview.together import figure as together
from rankfall.report import style


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
