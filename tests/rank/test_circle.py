"""Guards the roll-out: networks whose path is known by hand, each way of joining input and output, and what is called an error."""

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rankfall.measure.context import Context
from rankfall.random_streams import stream
from rankfall.rank.circle.measure import circle
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
