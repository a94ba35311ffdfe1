"""Make stacks of small networks with their data, and select rows."""

from typing import Any

import torch
from helpers import cells, network_of

from rankfall.measure.context import Context
from rankfall.tasks._dataset import Split
from rankfall.train.data import Data

LENGTH, SYMBOLS = 5, 7


def stack(members: int = 2, **architecture: Any) -> Context:
    """Return networks at their initial values with sequences to sort."""
    chosen = [cells(architecture=architecture, grid={"seed": seed})[0] for seed in range(members)]
    inputs = torch.randint(SYMBOLS, (members, 6, LENGTH), generator=torch.Generator().manual_seed(1))
    split = Split(inputs, inputs.sort(-1).values)
    data = Data({"train": split, "test": split}, torch.zeros(members), SYMBOLS)
    return Context(network_of(members, LENGTH, SYMBOLS, torch.float32, **architecture), data, chosen)


def chosen(rows: list[dict[str, Any]], **labels: Any) -> list[dict[str, Any]]:
    return [row for row in rows if all(row[name] == value for name, value in labels.items())]
