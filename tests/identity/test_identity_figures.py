"""The figures of the identity study, drawn from tables made by hand: what lines show, and what captions count."""

from typing import Any

import pandas as pd
import pytest
from identity_rows import DEPTH, LEFT, cells, rates

from rankfall.errors import RankfallError
from rankfall.identity.model_token_identity.shown import figure as model_token_identity
from rankfall.identity.token_identity.figure import select_own, token_identity
from rankfall.report import style


@pytest.mark.long
def test_rates_are_drawn_with_what_varies_and_captions_say_what_is_left() -> None:
    picture = token_identity(lambda name: cells(rates), task="sorting", training="init")
    assert "means over 2 seeds" in picture.caption
    assert "most often in transformer (0.81) and least in SAN (0.00); a guess (dotted) finds 0.05." in picture.caption
    assert picture.numbers is not None
    told = picture.numbers[(picture.numbers.candidates == "sentence") & (picture.numbers.distance == "cosine")]
    last = told[told.layer == DEPTH].set_index(["network", "map"]).rate
    assert last["SAN+skip", "naive"] == last["SAN+skip", "linear"] == pytest.approx(0.9**DEPTH)
    assert set(told[told["map"] == "position"].rate) == {0.25}
    naive = [one for one in picture.figure.axes[0].lines if len(one.get_xdata()) == DEPTH + 1]
    assert naive[0].get_ydata().tolist() == pytest.approx([0.1**layer for layer in range(DEPTH + 1)])


def test_a_map_is_shown_with_the_loss_that_it_is_asked_by() -> None:
    found = select_own(cells(rates))
    assert (found.loss.isna() | (found.loss == found.distance)).all()
    assert (found.trained_layer.isna() | (found.trained_layer == found.layer)).all()


@pytest.mark.long
def test_models_have_a_column_each_and_bands_over_sentences(tmp_path: Any) -> None:
    rows = [
        {"model": "hub/small", "phase": phase, "variant": variant, "seed": 0} | row
        for phase, variant in (("init", "SAN"), ("pretrained", "transformer"))
        for row in rates(LEFT[variant])
    ]
    table = pd.DataFrame(rows).convert_dtypes()
    with style.apply_style():
        picture = model_token_identity(lambda name: table)
        style.save(picture, tmp_path / "figure.png")
    assert picture.numbers is not None
    last = picture.numbers[
        (picture.numbers.layer == DEPTH) & (picture.numbers.network == "small, pretrained, transformer")
    ]
    assert last.rate.tolist() == pytest.approx([0.95**DEPTH] * len(last))
    assert (last.high - last.low).tolist() == pytest.approx([0.04] * len(last))
    edges = [path.vertices[:, 1].max() for band in picture.figure.axes[1].collections for path in band.get_paths()]
    assert max(edges) == 1  # the interval at layer 0 would go to 1.02, and no rate does
    with pytest.raises(RankfallError, match="no row with these models, phases and variants"):
        model_token_identity(lambda name: table, phases=["other"])
