"""Guards that the law on real weights draws what was measured, says what it leaves out, and is never empty."""

from typing import Any

import pandas as pd
import pytest

from rankfall.errors import RankfallError
from rankfall.report.figures.model_law import model_law
from rankfall.report.figures.models import COLOUR


def table(*variants: str) -> Any:
    rows = [
        {"model": "bert", "phase": "init", "variant": variant, "layer": layer}
        | {"log10_residual": -0.1 * 3.0**layer, "direct": 10 ** max(-16, -0.1 * 3.0**layer), "exponent": 3.0}
        for variant in variants
        for layer in range(5)
    ]
    return pd.DataFrame(rows, columns=["model", "phase", "variant", "layer", "log10_residual", "direct", "exponent"])


def labels(picture: Any) -> list[str]:
    return [text.get_text() for text in picture.figure.axes[0].get_legend().get_texts()]


def test_all_that_was_measured_is_drawn() -> None:
    found = model_law(lambda name: table("transformer", "SAN+skip", "SAN"))
    assert labels(found) == ["SAN", "SAN+skip", "transformer"]
    colours = {line.get_label(): line.get_color() for line in found.figure.axes[0].lines}
    assert {colours[name] for name in labels(found)} == {COLOUR[name] for name in labels(found)}
    assert "not shown" not in found.caption
    assert all(f"bert init {name}: 10^-8 after 4 layers" in found.caption for name in labels(found))


def test_what_is_left_out_is_said() -> None:
    found = model_law(lambda name: table("SAN", "SAN+MLP", "SAN+skip"), variants=["SAN+MLP"])
    assert labels(found) == ["SAN+MLP"]
    assert "In the table but not shown: variant SAN, SAN+skip." in found.caption


@pytest.mark.parametrize(
    ("measured", "asked", "said"),
    [
        (["SAN"], ["SAN+MLP"], "variant SAN\\+MLP was not measured; there is: SAN$"),
        ([], [], "nothing was measured: no model"),
    ],
)
def test_an_empty_figure_is_refused(measured: list[str], asked: list[str], said: str) -> None:
    with pytest.raises(RankfallError, match=said):
        model_law(lambda name: table(*measured), variants=asked)
