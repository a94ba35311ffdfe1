"""Extrapolation of masked language models: the same tokens are hidden at every length, the trained length gives training's own accuracy,
and what cannot run says why."""

import math
from typing import Any

import pytest
import torch
from helpers import by_member, config

from rankfall.measure.context import Context
from rankfall.nets.network import Shape
from rankfall.position.extrapolation.measure import extrapolation, hide_tokens
from rankfall.random_streams import stream
from rankfall.run.plan import make_plan
from rankfall.tasks._dataset import Dataset, Split
from rankfall.train import recipe
from rankfall.train.data import Data
from rankfall.train.loop import fit, means

LENGTH, WINDOWS, SYMBOLS, SPECIAL = 8, 13, 30, 5


def trained(epochs: int, **architecture: Any) -> tuple[Context, list[dict[str, float]]]:
    """Networks, and what training said of each at its end on the split `test`. The text has an order that can be learned, and ends of
    texts here and there."""
    raw = config(architecture={"position": "rope", **architecture}, training={"dtype": "float64", "epochs": epochs})
    raw["tasks"] = {"text": {"task": "masked_text", "length": LENGTH, "longer": None}}
    raw["grid"] = [{"task": "text", "architecture": "net", "training": "short", "seed": "3..4"}]
    cells = make_plan(raw).cells
    words = SPECIAL + stream(0, "words").integers(2, size=WINDOWS * LENGTH).cumsum() % 25
    words[::17] = 2
    test = torch.from_numpy(words).view(WINDOWS, LENGTH)
    data = Dataset({name: Split(test, test) for name in ("train", "test")}, SYMBOLS, SYMBOLS, 0.04, SPECIAL)
    stacked = Data.from_datasets([data] * len(cells), torch.float64, torch.device("cpu"))
    shape = Shape("tokens", "hidden", LENGTH, SYMBOLS, SYMBOLS)
    trainings = [cell.training for cell in cells]
    members = recipe.initial(cells[0].architecture, shape, [c.seed for c in cells], trainings, torch.device("cpu"))
    history = fit(members, stacked, recipe.objective(trainings[0]), recipe.course(trainings[0]))
    courses = [means(history.tensors, k) for k in range(len(cells))]
    last = [{metric: value for *at, metric, value in course if at == [epochs, "test"]} for course in courses]
    return Context(members.module.requires_grad_(False), stacked, cells), last  # type: ignore[arg-type]


def by_times(rows: list[dict[str, Any]], member: int = 0) -> dict[float, dict[str, Any]]:
    return {row["times"]: row for row in rows if row["member"] == member}


def test_at_the_trained_length_it_is_the_accuracy_of_training() -> None:
    made, ends = trained(40)
    for member, last in enumerate(ends):
        row = by_times(by_member(extrapolation, made, times=[1]), member)[1]
        assert row["accuracy"] == last["accuracy"] > 0.1  # chance is .04
        assert row["loss"] == pytest.approx(last["loss"], rel=1e-12)
        assert row["kept"] == 1 and row["targets"] == hide_tokens(made).wanted[member].ge(0).sum()


@pytest.mark.parametrize("times", [0.25, 0.5, 1, 2, 4])
def test_every_length_against_a_loop_over_tokens(times: float) -> None:
    """Window by window, one at a time, from the running text and the list of places that training hides."""
    made, _ = trained(0, sentinels="bos", mask="causal")
    text, length = hide_tokens(made), round(times * LENGTH)
    for member in range(2):
        row = by_times(by_member(extrapolation, made, times=[times], megabytes=1), member)[times]
        running = text.seen[member].flatten()
        asked = {
            window * LENGTH + place: wanted
            for window in range(WINDOWS)
            for place, wanted in zip(text.places[member, window].tolist(), text.wanted[member, window].tolist())
            if wanted >= 0
        }
        whole = len(running) // length * length
        now, then = (
            [
                (-float(scores[place - start, asked[place]]), scores[place - start].argmax() == asked[place])
                for start in range(0, whole, size)
                for scores in [made.network(running[start : start + size].expand(2, 1, -1))[member, 0].log_softmax(-1)]
                for place in range(start, min(start + size, whole))
                if place in asked
            ]
            for size in (length, LENGTH)
        )
        assert row["targets"] == len(now) == len(then) > 5
        assert row["accuracy"] == sum(bool(right) for _, right in now) / len(now)
        assert row["accuracy_trained"] == sum(bool(right) for _, right in then) / len(then)
        assert row["loss"] == pytest.approx(sum(loss for loss, _ in now) / len(now), rel=1e-10)
        assert row["loss_trained"] == pytest.approx(sum(loss for loss, _ in then) / len(then), rel=1e-10)


def test_outputs_that_are_not_finite_have_no_accuracy() -> None:
    made, _ = trained(0, normaliser="exp")
    made.network.blocks[0].attention.query.weight[1] *= 1e6
    found = [by_times(by_member(extrapolation, made, times=[2]), member)[2] for member in (0, 1)]
    assert math.isfinite(found[0]["loss"]) and not found[0]["refused"]
    assert found[1]["accuracy"] is None and found[1]["kept"] is None
    assert found[1]["refused"] == "outputs at this length are not finite"
    assert found[1]["targets"] == found[0]["targets"]
