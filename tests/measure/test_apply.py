"""Check that a measure receives the network whose weights were stored, with its data; and a model with each of its seeds."""

from typing import Any

import pytest
import torch
from helpers import cells, each_network, network_of

from rankfall.measure import models
from rankfall.measure.apply import apply
from rankfall.measure.context import Context, Rows, Uninterrupted
from rankfall.nets.network import Shape
from rankfall.random_streams import stream
from rankfall.tasks.sorting import sorting
from rankfall.train.data import Data


def sum_outputs(context: Context) -> Rows:
    return [{"sum": float(context.network(context.data.test.inputs).sum())}]


def test_rows_are_those_of_the_weights() -> None:
    parts = {"position": "toeplitz"}  # a position that every layer holds
    networks, sums = each_network(network_of(2, 5, 6, torch.float32, **parts)), []
    for cell, network in zip(cells(architecture=parts, grid={"seed": [0, 1]}), networks):
        datasets = [sorting(stream(cell.seed, "data"), train=8, test=4, length=5, symbols=6)]
        data = Data.from_datasets(datasets, torch.float32, torch.device("cpu"))
        weights, shape = dict(network.named_parameters()), Shape("tokens", "classes", length=5, size_in=6, size_out=6)
        (row,) = apply(sum_outputs, cell, shape, weights, data, torch.device("cpu"), Uninterrupted())
        assert row["sum"] == float(network(data.test.inputs).sum())
        sums.append(row["sum"])
    assert sums[0] != pytest.approx(sums[1], rel=1e-3)


@pytest.mark.parametrize(("phase", "seeds"), [("init", [0, 1, 2]), ("pretrained", [0])])
def test_pretrained_weights_have_no_seed(phase: Any, seeds: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "make_request", lambda source, texts, **fields: source)
    monkeypatch.setattr(models, "rows_of_subjects", lambda asked, chosen, **_: [{"seed": chosen, "phase": asked.phase}])
    measure = models.measure_models(samples=2, length=4)(lambda context, subject: [])
    assert measure(Context(), model="bert", phase=phase, seeds=3) == [
        {"seed": [seed], "phase": phase} for seed in seeds
    ]
    monkeypatch.setattr(models, "make_request", lambda source, texts, **fields: None)  # an optional one that is missing
    assert measure(Context(), model="bert", seeds=3) == []
