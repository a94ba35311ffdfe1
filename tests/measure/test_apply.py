"""Guards what a measure is given: the very network that was stored, with its data."""

from typing import Any

import pytest
import torch
from helpers import cells

from rankfall.measure.apply import apply
from rankfall.measure.context import Context, Rows, Uninterrupted
from rankfall.nets.network import Shape, build
from rankfall.random_streams import stream
from rankfall.tasks.sorting import sorting
from rankfall.train.data import Data

SHAPE = Shape("tokens", "classes", length=5, size_in=6, size_out=6)


def stored(chosen: list[Any]) -> dict[str, torch.Tensor]:
    network = build(chosen[0].architecture, SHAPE, len(chosen), torch.float32)
    network.initialise([cell.seed for cell in chosen])
    return {name: value.detach().clone() for name, value in network.named_parameters()}


def measured(cell: Any, weights: dict[str, torch.Tensor]) -> list[dict[str, Any]]:
    data = Data.from_datasets(
        [sorting(stream(cell.seed, "data"), train=8, test=4, length=5, symbols=6)], torch.float32, torch.device("cpu")
    )

    def outputs(context: Context) -> Rows:
        (found,) = context.network(context.data.test.inputs).sum((1, 2, 3))
        return [{"sum": float(found)}]

    return apply(outputs, cell, SHAPE, weights, data, torch.device("cpu"), Uninterrupted())


def test_rows_are_those_of_the_weights() -> None:
    chosen = cells(architecture={"position": "toeplitz"}, grid={"seed": [0, 1]})  # a position that every layer holds
    weights = stored(chosen)
    sums = []
    for k, cell in enumerate(chosen):
        own = {name: value[k : k + 1] for name, value in weights.items()}
        (row,) = measured(cell, own)
        data = sorting(stream(cell.seed, "data"), train=8, test=4, length=5, symbols=6)
        network = build(cell.architecture, SHAPE, 1, torch.float32)
        network.load_state_dict(own, strict=False)
        assert row["sum"] == float(network(data.splits["test"].inputs.unsqueeze(0)).sum())
        sums.append(row["sum"])
    assert sums[0] != pytest.approx(sums[1], rel=1e-3)
