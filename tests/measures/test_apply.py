"""Guards what a measure is given: the very networks that were stored, member by member, with their data."""

from typing import Any

import pytest
import torch
from helpers import cells

from rankfall.measures._apply import apply
from rankfall.measures._context import Context, Rows, Uninterrupted
from rankfall.nets.network import Shape, build
from rankfall.streams import stream
from rankfall.tasks.sorting import sorting
from rankfall.train.data import Data

SHAPE = Shape("tokens", "classes", length=5, size_in=6, size_out=6)


def stored(chosen: list[Any]) -> dict[str, torch.Tensor]:
    network = build(chosen[0].architecture, SHAPE, len(chosen), torch.float32)
    network.initialise([cell.seed for cell in chosen])
    return {name: value.detach().clone() for name, value in network.named_parameters()}


def measured(chosen: list[Any], weights: dict[str, torch.Tensor]) -> list[list[dict[str, Any]]]:
    datasets = [sorting(stream(cell.seed, "data"), train=8, test=4, length=5, symbols=6) for cell in chosen]
    data = Data.of(datasets, torch.float32, torch.device("cpu"))

    def outputs(context: Context) -> Rows:
        found = context.network(context.data.test.inputs).sum((1, 2, 3))
        return [{"member": k, "sum": float(found[k])} for k in reversed(range(len(context.cells)))]

    return apply(outputs, chosen, SHAPE, weights, data, torch.device("cpu"), Uninterrupted())


def test_rows_belong_to_the_cell_whose_weights_made_them() -> None:
    chosen = cells(architecture={"position": "toeplitz"}, grid={"seed": [0, 1]})  # a position that every layer holds
    weights = stored(chosen)
    together = measured(chosen, weights)
    for k, cell in enumerate(chosen):
        (alone,) = measured([cell], {name: value[k : k + 1] for name, value in weights.items()})
        assert together[k][0]["sum"] == pytest.approx(alone[0]["sum"], rel=1e-3)
    assert together[0][0]["sum"] != pytest.approx(together[1][0]["sum"], rel=1e-3)


@pytest.mark.parametrize("name", ["blocks.1.attention.value.weight", "position.table", "more"])
def test_weights_that_do_not_fit_are_no_network(name: str) -> None:
    chosen = cells(architecture={"position": "toeplitz"})
    weights = stored(chosen)
    if weights.pop(name, None) is None:
        weights[name] = torch.zeros(1)
    with pytest.raises(RuntimeError, match=name.replace(".", r"\.")):
        measured(chosen, weights)
