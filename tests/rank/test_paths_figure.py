"""Guards the figure that the README opens with: what its bands are, and that its caption says what the numbers say."""

from itertools import product
from typing import Any

import pandas as pd
import pytest
from seen import line

from rankfall.rank.paths.figure import describe_draws, paths
from rankfall.report.colours import BLUE


def table(whole: float, curve: list[float]) -> pd.DataFrame:
    """Return three seeds around these means, four repeats around each: deviations of 0.01 over seeds, far more over repeats."""
    rows: list[dict[str, Any]] = []
    for seed, repeat in product(range(3), range(4)):
        shift, place = 0.01 * (seed - 1), {"seed": seed, "key": f"cell {seed}"}
        if repeat == 0:
            rows += [place | {"kind": "whole", "accuracy": whole + shift}, place | {"kind": "chance", "accuracy": 0.34}]
        place |= {"kind": "path", "paths": 20, "repeat": repeat, "evaluation": "recomputed"}
        noise = 0.1 if repeat % 2 else -0.1
        rows += [place | {"length": length, "accuracy": mean + shift + noise} for length, mean in enumerate(curve)]
    about = {"task": "sorting", "status": "done", "architecture": "net", "training": "converged"}
    return pd.DataFrame(rows).assign(**about, depth=len(curve) - 1)


SHORT = [0.5, 0.8, 0.6, 0.5, 0.4, 0.35, 0.34]  # short paths carry, long ones do not
VERDICTS = {
    "holds": (0.95, SHORT, "holds: short ones give 75%."),
    "long paths carry": (0.95, [0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9], "does not hold: short ones give 43 ± 1%."),
    "nothing learned": (0.3, SHORT, "cannot be seen (the network itself is less than 0.05 above chance)."),
    "at the limit": (0.95, [0.5, 0.648, 0.6, 0.5, 0.4, 0.35, 0.34], "there is one seed): short ones give 50 ± 1%."),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_caption_says_whether_the_published_shape_holds(case: str) -> None:
    whole, curve, sentence = VERDICTS[case]
    caption = paths(lambda name: table(whole, curve)).caption
    assert caption.endswith(sentence)
    assert "over 3 seeds" in caption


def test_lines_and_bands_are_over_seeds_and_not_over_repeats() -> None:
    picture = paths(lambda name: table(0.9, [0.5, 0.7]))
    assert picture.numbers is not None
    points = picture.numbers[picture.numbers.kind == "path"]
    assert points["mean"].tolist() == pytest.approx([0.5, 0.7])
    assert points["deviation over seeds"].tolist() == pytest.approx([0.01, 0.01])
    (panel,) = picture.figure.axes
    assert line(panel, BLUE) == pytest.approx([0.5, 0.7])
    edges = panel.collections[0].get_paths()[0].vertices[:, 1]  # of the band, as seaborn draws it
    assert (edges.min(), edges.max()) == (pytest.approx(0.49), pytest.approx(0.71))


def test_the_caption_says_how_much_of_the_bands_is_the_draw() -> None:
    """Repeats at +-0.1 have variance 0.04/3, their mean of four a quarter of it; the seeds' means are 0.01 apart, variance 0.0001."""

    def share(rows: pd.DataFrame) -> str:
        return describe_draws(rows.assign(panel="net"))

    assert share(table(0.9, [0.5, 0.7])) == "100%"
    apart = table(0.9, [0.5, 0.7])
    apart.loc[apart.kind == "path", "accuracy"] += 0.1 * (apart.seed - 1)
    # Means 0.39, 0.5, 0.61: variance 0.0121; the draw's share is 0.04 / 3 / 4 / 0.0121.
    assert share(apart) == "28%"
    assert share(apart[apart.repeat.isna() | (apart.repeat == 0)]) == "an unknown share"
