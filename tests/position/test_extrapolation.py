"""Extrapolation of masked language models: the same tokens are hidden at every length, the trained length gives training's own accuracy,
and what cannot run says why."""

import math
from typing import Any

import pandas as pd
import pytest
import torch
from helpers import config
from torch import Tensor

from rankfall.errors import RankfallError
from rankfall.measure.context import Context
from rankfall.nets.network import Shape
from rankfall.position.extrapolation import measure as module
from rankfall.position.extrapolation.measure import extrapolation, hidden
from rankfall.position.extrapolation.shown import compute_kept_by_chance
from rankfall.random_streams import stream
from rankfall.run.plan import make_plan
from rankfall.tasks._dataset import Dataset, Split
from rankfall.train import data, recipe
from rankfall.train.data import Data
from rankfall.train.loop import fit, means

LENGTH, WINDOWS, SYMBOLS, SPECIAL = 8, 13, 30, 5


def context(**architecture: Any) -> Context:
    """Networks at their initial values."""
    return trained(0, **architecture)[0]


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
    last = [
        {
            metric: value
            for epoch, split, metric, value in means(history.tensors, k)
            if (epoch, split) == (epochs, "test")
        }
        for k in range(len(cells))
    ]
    return Context(members.module.requires_grad_(False), stacked, cells), last  # type: ignore[arg-type]


def by_times(rows: list[dict[str, Any]], member: int = 0) -> dict[float, dict[str, Any]]:
    return {row["times"]: row for row in rows if row["member"] == member}


def test_at_the_trained_length_it_is_the_accuracy_of_training() -> None:
    made, ends = trained(40)
    for member, last in enumerate(ends):
        row = by_times(extrapolation(made, times=[1]), member)[1]
        assert row["accuracy"] == last["accuracy"] > 0.1  # chance is .04
        assert row["loss"] == pytest.approx(last["loss"], rel=1e-12)
        assert row["kept"] == 1 and row["targets"] == hidden(made).wanted[member].ge(0).sum()


@pytest.mark.parametrize("times", [0.25, 0.5, 1, 2, 4])
def test_every_length_against_a_loop_over_tokens(times: float) -> None:
    """Window by window, one at a time, from the running text and the list of places that training hides."""
    made = context(sentinels="bos", mask="causal")
    text, length = hidden(made), round(times * LENGTH)
    for member in range(2):
        row = by_times(extrapolation(made, times=[times], megabytes=1), member)[times]
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


def test_where_what_is_seen_does_not_grow_neither_does_the_accuracy_change() -> None:
    """Attention to oneself alone: length makes no difference, at any number of windows at once."""
    made = context(position="none", depth=1)
    made.network.blocks[0].attention.mask = lambda length, device: torch.eye(length, dtype=torch.bool)
    rows = by_times(extrapolation(made, times=[0.5, 1, 2, 4, 8], megabytes=1))
    for row in rows.values():
        assert row["loss"] == pytest.approx(row["loss_trained"], rel=1e-12)
        assert row["accuracy"] == row["accuracy_trained"]
    assert rows[0.5]["loss"] == pytest.approx(rows[1]["loss"], rel=1e-12)
    assert rows[8]["targets"] < rows[1]["targets"]  # one window of 8 out of 13 of 1


def test_what_cannot_run_says_why() -> None:
    rows = extrapolation(context(position="learned"), times=[0.5, 1, 2])
    for member in range(2):
        found = by_times(rows, member)
        assert found[2]["accuracy"] is None and found[2]["targets"] == 0
        assert found[2]["refused"] == "position learned admits no more than the trained length"
        assert found[1]["accuracy"] is not None and found[0.5]["refused"] == ""
    rows = extrapolation(context(), times=[16])
    assert {row["refused"] for row in rows} == {"the held-out text has 104 tokens, too few for one window"}
    with pytest.raises(
        RankfallError, match=r"times: 1.5 times the trained length 8 is neither a multiple .* use 1, 2, 4"
    ):
        extrapolation(context(), times=[1.5])


def test_outputs_that_are_not_finite_have_no_accuracy() -> None:
    made = context(normaliser="exp")
    made.network.blocks[0].attention.query.weight[1] *= 1e6
    found = [by_times(extrapolation(made, times=[2]), member)[2] for member in (0, 1)]
    assert math.isfinite(found[0]["loss"]) and not found[0]["refused"]
    assert found[1]["accuracy"] is None and found[1]["kept"] is None
    assert found[1]["refused"] == "outputs at this length are not finite"
    assert found[1]["targets"] == found[0]["targets"]


def test_memory_is_bounded_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made, seen = context(), []
    whole = extrapolation(made, times=[1, 4])
    features = made.network.features

    def watched(inputs: Tensor, *rest: Any) -> Tensor:
        seen.append(tuple(inputs.shape))
        return features(inputs, *rest)

    monkeypatch.setattr(made.network, "features", watched)
    monkeypatch.setattr(
        module, "COPIES", 36
    )  # so that a megabyte holds the weights of 14 windows of 8 tokens, and of none of 32
    parts = extrapolation(made, times=[1, 4], megabytes=1)
    assert seen == [(2, WINDOWS, LENGTH)] + 3 * [(2, 1, 4 * LENGTH)]
    for one, other in zip(whole, parts):
        assert one["accuracy"] == other["accuracy"] and one["loss"] == pytest.approx(other["loss"], rel=1e-12)


def test_a_plan_accepts_it_on_text_alone() -> None:
    raw = config(measures={"extrapolation": {}}, architecture={"position": "rope"})
    with pytest.raises(RankfallError, match="is for hidden, but task 'sorting' has classes"):
        make_plan(raw)
    raw["tasks"] = {"text": {"task": "masked_text"}}
    raw["grid"] = [{"task": "text", "architecture": "net", "training": "short", "seed": [0, 1]}]
    plan = make_plan(raw)
    assert plan.selected["extrapolation"] == {cell.key for cell in plan.cells}


def test_text_is_hidden_in_as_many_batches_as_training_evaluates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirteen windows in batches of five: all of them, one after the other, and what is asked is what stood there."""
    monkeypatch.setattr(data, "EVALUATED", 5)
    made = context()
    text, whole = hidden(made), made.data.test.inputs
    assert text.seen.shape == whole.shape == (2, WINDOWS, LENGTH)
    stood = whole.gather(2, text.places)
    assert torch.equal(stood[text.wanted >= 0], text.wanted[text.wanted >= 0])
    assert torch.equal(text.seen.scatter(2, text.places, stood), whole)


def test_windows_joined_and_divided_by_hand() -> None:
    """Three tokens of each window of four are asked for: in the long window of two, and in the half that they lie in."""
    seen, places = torch.arange(12).view(1, 3, 4), torch.tensor([[[0, 2, 3], [1, 2, 3], [0, 1, 2]]])
    text = module.HiddenText(seen, places, 100 + seen.gather(2, places))
    long = text.join(2)
    assert long.seen.tolist() == [[[0, 1, 2, 3, 4, 5, 6, 7]]]
    assert long.places.tolist() == [[[0, 2, 3, 5, 6, 7]]] and long.wanted.tolist() == [[[100, 102, 103, 105, 106, 107]]]
    half = text.divide(2)
    assert half.seen.tolist() == [[[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]]
    halves = zip(half.places[0].tolist(), half.wanted[0].tolist())
    asked = [[(place, wanted) for place, wanted in zip(*one) if wanted >= 0] for one in halves]
    assert asked == [
        [(0, 100)],
        [(0, 102), (1, 103)],
        [(1, 105)],
        [(0, 106), (1, 107)],
        [(0, 108), (1, 109)],
        [(0, 110)],
    ]


def test_what_a_guess_keeps_is_of_the_accuracy_at_the_trained_length() -> None:
    found = compute_kept_by_chance(pd.DataFrame({"chance": [0.1, 0.1, 0.1], "accuracy_trained": [0.5, 0.1, 0.0]}))
    assert found.tolist()[:2] == [0.2, 1.0] and math.isnan(found[2])  # of nothing there is no share
