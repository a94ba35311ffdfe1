"""Check the roll-out: networks whose path is known by hand, ways of joining input and output, what is called an error, and the figure."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from rankfall.measure.context import Context
from rankfall.random_streams import stream
from rankfall.rank.circle.measure import circle
from rankfall.rank.circle.shown import figure
from rankfall.tasks import circle as task
from rankfall.train.data import Data

POINTS = 40


def rollout(function: Any, steps: int = 12, **options: Any) -> dict[str, torch.Tensor]:
    """Columns as (1, S, T) for a network that is just a function."""
    options = {"points": POINTS} | options
    data = Data.from_datasets([task.circle(stream(0, "data"), **options)], torch.float64, torch.device("cpu"))
    cell = SimpleNamespace(task=SimpleNamespace(task=SimpleNamespace(options=options)))
    rows = circle(Context(function, data, [cell]), steps=steps)
    assert [(r["step"], r["token"]) for r in rows] == [(s, t) for s in range(steps) for t in (0, 1)]
    return {n: torch.tensor([r[n] for r in rows]).view(1, steps, 2) for n in ("x", "y", "distance", "error")}


def turn(x: torch.Tensor, steps: float = 1.0) -> torch.Tensor:
    angle = torch.tensor(2 * math.pi / POINTS * steps)
    matrix = torch.tensor([[angle.cos(), angle.sin()], [-angle.sin(), angle.cos()]], dtype=x.dtype)
    return x @ matrix


@pytest.mark.parametrize("skip", ["none", "step"])
def test_who_knows_the_next_point_makes_no_error(skip: str) -> None:
    answer = turn if skip == "none" else lambda x: turn(x) - x
    found = rollout(answer, steps=POINTS + 1, skip=skip)
    assert found["error"].max() < 1e-6
    assert torch.allclose(found["distance"], torch.tensor(0.6), atol=1e-6)
    last = torch.stack([found["x"][0, -1], found["y"][0, -1]])
    torch.testing.assert_close(last, torch.tensor([[0.3, -0.3], [0, 0]]), rtol=1e-6, atol=1e-6)


def test_half_way_to_the_mean_halves_the_distance_each_step() -> None:
    found = rollout(lambda x: (x + x.mean(2, keepdim=True)) / 2)
    assert torch.allclose(found["distance"][0, :, 0], 0.6 * 0.5 ** torch.arange(12), atol=1e-7)


def test_step_adds_the_output_and_published_shows_it() -> None:
    step = rollout(lambda x: torch.full_like(x, 0.1), skip="step")
    assert torch.allclose(step["x"][0, :, 0], 0.3 + 0.1 * torch.arange(12), atol=1e-6)
    # Input 0.3, 0.3 + f(0.3), ...; shown is f alone: with f(x) = x / 2 the inputs are 0.3 (3/2)^s.
    shown = rollout(lambda x: x / 2, skip="published", antipodal=False)
    expected = torch.cat([torch.tensor([0.3]), 0.15 * 1.5 ** torch.arange(11)])
    assert torch.allclose(shown["x"][0, :, 0], expected, rtol=1e-6)


def test_infinity_is_not_a_number() -> None:
    assert rollout(lambda x: x * 1e300)["distance"][0, -1].isnan().all()


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
    caption = figure(lambda name: TABLE).caption
    assert "training published" in caption and "at width 32" in caption and "a line for each of 3 seeds" in caption
    assert "meet in 2 of 9 roll-outs: 2 of 3 of SAN and 0 of 6 of SAN+skip." in caption
    numbers = figure(lambda name: TABLE).numbers
    assert numbers is not None
    san = numbers[numbers.architecture == "SAN"].iloc[0]
    assert (san.roll_outs, san.met) == (3, 2)
    assert (san.median_ratio, san.median_error) == (pytest.approx(0.04), pytest.approx(0.29, abs=0.005))
    skip = numbers[numbers.architecture == "SAN+skip"]
    assert skip.roll_outs.sum() == 6 and skip.met.sum() == 0 and skip.median_ratio.tolist() == pytest.approx([1.0, 1.0])
