"""The figure of the law on real weights draws every variant that was measured."""

from typing import Any

import pandas as pd
import pytest
from matplotlib.colors import to_hex

from rankfall.rank.law.figure import model_figure as model_law
from rankfall.report.colours import colour


def table(*variants: str) -> Any:
    rows = [
        {"model": "bert", "phase": "init", "seed": 0, "variant": variant, "layer": layer}
        | {"log10_residual": -0.1 * 3.0**layer, "direct": 10 ** max(-16, -0.1 * 3.0**layer), "exponent": 3.0}
        for variant in variants
        for layer in range(5)
    ]
    return pd.DataFrame(
        rows, columns=["model", "phase", "seed", "variant", "layer", "log10_residual", "direct", "exponent"]
    )


def labels(picture: Any) -> list[str]:
    return [text.get_text() for text in picture.figure.legends[0].get_texts()]


def test_all_that_was_measured_is_drawn() -> None:
    found = model_law(lambda name: table("transformer", "SAN+skip", "SAN"))
    assert labels(found)[:3] == ["SAN", "SAN+skip", "transformer"]
    drawn = {to_hex(line.get_color()).upper() for line in found.figure.axes[0].lines if len(line.get_xdata())}
    assert {colour(name).upper() for name in labels(found)[:3]} <= drawn
    ends = found.numbers[found.numbers.layer == 4].set_index("variant").log10_residual
    assert dict(ends) == pytest.approx(dict.fromkeys(labels(found)[:3], -0.1 * 3.0**4))
