"""Guards that the law on real weights draws what was measured, says what it leaves out, and is never empty."""

from typing import Any

import pandas as pd
import pytest
from matplotlib.colors import to_hex

from rankfall.errors import RankfallError
from rankfall.rank.model_law.shown import figure as model_law
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
    tie = "in transformer (one seed: not decided) after 4 layers, with a local exponent of 3.00"
    assert f"{tie} once it is below 0.01 (bert, init)." in found.caption


def test_each_model_is_compared_with_itself_and_ties_are_ties() -> None:
    """The lowest variant of all models was named, whatever their depths; seeds whose values do not exist were counted."""
    seeds = [table("SAN", "SAN+MLP").assign(seed=seed, off=seed) for seed in (0, 1)]
    seeds += [table("SAN+skip").assign(seed=seed, log10_residual=-0.01) for seed in (0, 1)]
    rows = pd.concat(seeds)
    rows["log10_residual"] += 0.1 * (rows.variant == "SAN+MLP") * rows.seed + rows.pop("off").fillna(0.0)
    other = table("SAN").assign(model="deep", layer=lambda one: one.layer + 3)
    gone = table("transformer").assign(model="deep", log10_residual=lambda one: one.log10_residual.where(one.layer < 4))
    said = model_law(lambda name: pd.concat([rows, other, gone])).caption
    assert (
        "lowest in SAN and SAN+MLP (10^-7.6 to 10^-7.5, a tie) and largest in SAN+skip (0.977) after 4 layers" in said
    )
    assert "in SAN (10^-8.1) after 7 layers, of the 1 that have one there, with" in said
    lost = rows.assign(log10_residual=rows.log10_residual.where((rows.seed == 0) | (rows.variant != "SAN")))
    assert "medians over 2 seeds (SAN 1)" in model_law(lambda name: lost).caption


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
