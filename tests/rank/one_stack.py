"""Stacks of small networks with their data."""

from typing import Any

import torch
from helpers import cells
from torch import Tensor

from rankfall.measure.context import Context
from rankfall.nets.network import Shape, build
from rankfall.tasks._dataset import Split
from rankfall.train.data import Data

LENGTH, SYMBOLS = 5, 7


def inputs_of(members: int, samples: int = 6) -> Tensor:
    return torch.randint(SYMBOLS, (members, samples, LENGTH), generator=torch.Generator().manual_seed(1))


def stack(members: int = 2, training: dict[str, Any] | None = None, **architecture: Any) -> Context:
    """Networks at their initial values with sequences to sort."""
    made = [
        cells(
            architecture={"depth": 2, "heads": 2, "width": 8} | architecture,
            training=training or {},
            grid={"seed": seed},
        )[0]
        for seed in range(members)
    ]
    shape = Shape("tokens", "classes", length=LENGTH, size_in=SYMBOLS, size_out=SYMBOLS)
    network = build(made[0].architecture, shape, members, torch.float32)
    network.initialise(list(range(members)))
    inputs = inputs_of(members)
    data = Data(
        {name: Split(inputs, inputs.sort(-1).values) for name in ("train", "test")}, torch.zeros(members), SYMBOLS
    )
    return Context(network.requires_grad_(False), data, made)


def chosen(rows: list[dict[str, Any]], **labels: Any) -> list[dict[str, Any]]:
    return [row for row in rows if all(row[name] == value for name, value in labels.items())]
