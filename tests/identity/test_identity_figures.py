"""The figure of token identity draws the rates of a table made by hand."""

import pytest
from identity_rows import DEPTH, cells, rates

from rankfall.identity.token_identity.figure import token_identity


@pytest.mark.long
def test_rates_are_drawn_by_layer_and_map() -> None:
    picture = token_identity(lambda name: cells(rates), task="sorting", training="init")
    assert picture.numbers is not None
    told = picture.numbers[(picture.numbers.candidates == "sentence") & (picture.numbers.distance == "cosine")]
    last = told[told.layer == DEPTH].set_index(["network", "map"]).rate
    assert last["SAN+skip", "naive"] == last["SAN+skip", "linear"] == pytest.approx(0.9**DEPTH)
    assert set(told[told["map"] == "position"].rate) == {0.25}
    naive = [one for one in picture.figure.axes[0].lines if len(one.get_xdata()) == DEPTH + 1]
    assert naive[0].get_ydata().tolist() == pytest.approx([0.1**layer for layer in range(DEPTH + 1)])
