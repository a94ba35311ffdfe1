"""The figures of the identity study, drawn from tables made by hand: what lines show, and what captions count."""

import itertools
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from rankfall.errors import RankfallError
from rankfall.report import style
from rankfall.report.figures.model_token_identity import model_token_identity
from rankfall.report.figures.token_identity import token_identity
from rankfall.report.rates import own

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


def test_rates_are_drawn_with_what_varies_and_captions_say_what_is_left() -> None:
    picture = token_identity(lambda name: cells(rates), task="sorting", training="init")
    assert "means over 2 seeds" in picture.caption
    assert "most often in transformer (0.81) and least in SAN (0.00)." in picture.caption
    assert picture.numbers is not None
    told = picture.numbers[(picture.numbers.candidates == "sentence") & (picture.numbers.distance == "cosine")]
    last = told[told.layer == DEPTH].set_index(["network", "map"]).rate
    assert last["SAN+skip", "naive"] == last["SAN+skip", "linear"] == pytest.approx(0.9**DEPTH)
    assert set(told[told["map"] == "position"].rate) == {0.25}
    assert len(picture.figure.axes) == 4 * 4
    naive = [one for one in picture.figure.axes[0].lines if len(one.get_xdata()) == DEPTH + 1]
    assert naive[0].get_ydata().tolist() == pytest.approx([0.1**layer for layer in range(DEPTH + 1)])


def test_a_map_is_shown_with_the_loss_that_it_is_asked_by() -> None:
    found = own(cells(rates))
    assert (found.loss.isna() | (found.loss == found.distance)).all()
    assert (found.trained_layer.isna() | (found.trained_layer == found.layer)).all()


def test_models_have_a_column_each_and_bands_over_sentences(tmp_path: Any) -> None:
    rows = [
        {"model": "hub/small", "phase": phase, "variant": variant, "seed": 0} | row
        for phase, variant in (("init", "SAN"), ("pretrained", "transformer"))
        for row in rates(LEFT[variant])
    ]
    table = pd.DataFrame(rows).convert_dtypes()
    with style.applied():
        picture = model_token_identity(lambda name: table)
        style.save(picture, tmp_path / "figure.png")
    assert picture.numbers is not None
    last = picture.numbers[
        (picture.numbers.layer == DEPTH) & (picture.numbers.network == "small, pretrained, transformer")
    ]
    assert last.rate.tolist() == pytest.approx([0.95**DEPTH] * len(last))
    assert (last.high - last.low).tolist() == pytest.approx([0.04] * len(last))
    edges = [path.vertices[:, 1].max() for band in picture.figure.axes[1].collections for path in band.get_paths()]
    assert max(edges) == pytest.approx(1.02)  # of the interval at layer 0, where the rate is 1
    with pytest.raises(RankfallError, match="no such model, phase and variant"):
        model_token_identity(lambda name: table, phases=["other"])
