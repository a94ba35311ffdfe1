"""Guards the circle figure: roll-outs with known ends, and what its caption says of them."""

import numpy as np
import pandas as pd
import pytest

from rankfall.rank.circle.shown import figure as circle

STEPS = 11


def roll_out(architecture: str, seed: int, end: float, width: int = 32, training: str = "published") -> pd.DataFrame:
    """Two points that shrink from opposite places at radius 0.3 to `end` of that, in a straight line; they should stay."""
    share = 1 + (end - 1) * np.arange(STEPS) / (STEPS - 1)
    rows = [
        {"step": step, "token": token, "x": sign * 0.3 * part, "y": 0.0, "distance": 0.6 * part, "error": 0.3 * abs(1 - part)}
        for step, part in enumerate(share)
        for token, sign in enumerate((1, -1))
    ]  # fmt: skip
    about = {"task": "circle", "architecture": architecture, "training": training, "seed": seed, "width": width}
    return pd.DataFrame(rows).assign(**about, status="done", depth=1, key=f"{architecture}{seed}{width}{training}")


TABLE = pd.concat(
    [roll_out("SAN", seed, end) for seed, end in enumerate((0.0, 0.04, 0.5))]
    + [roll_out("SAN+skip", seed, 1.0, width) for seed in range(3) for width in (32, 64)]
    + [roll_out("SAN", 0, 0.0, training="long")],
    ignore_index=True,
)


def test_caption_says_how_many_met_and_how_far_off_they_are() -> None:
    caption = circle(lambda name: TABLE).caption
    assert "training published" in caption and "at width 32" in caption and "a line for each of 3 seeds" in caption
    assert "meet in 2 of 9 roll-outs: 2 of 3 of SAN and 0 of 6 of SAN+skip." in caption
    numbers = circle(lambda name: TABLE).numbers
    assert numbers is not None
    san = numbers[numbers.architecture == "SAN"].iloc[0]
    assert (san.roll_outs, san.met) == (3, 2)
    assert (san.median_ratio, san.median_error) == (pytest.approx(0.04), pytest.approx(0.29, abs=0.005))
    skip = numbers[numbers.architecture == "SAN+skip"]
    assert skip.roll_outs.sum() == 6 and skip.met.sum() == 0 and skip.median_ratio.tolist() == pytest.approx([1.0, 1.0])
