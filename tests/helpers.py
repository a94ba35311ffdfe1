"""Small configurations for tests, expanded by the real plan."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rankfall import components
from rankfall.measure.context import Context, Rows
from rankfall.nets.network import Network, Shape, build
from rankfall.run.plan import make_plan
from rankfall.run.plan.cell import Cell
from rankfall.tasks._dataset import Dataset, Split
from rankfall.train.data import Data


def config(**changes: Any) -> dict[str, Any]:
    """One sorting cell, left at initialisation; `architecture`, `training`, `task` and `grid` are merged in."""
    return {
        "name": "test",
        "tasks": {"sorting": {"train": 64, "test": 32, "length": 5, "symbols": 6} | changes.get("task", {})},
        "architectures": {"net": {"depth": 2, "heads": 2, "width": 8} | changes.get("architecture", {})},
        "trainings": {"short": {"epochs": 0, "batch": 10} | changes.get("training", {})},
        "grid": [
            {"task": "sorting", "architecture": "net", "training": "short", "seed": 0} | changes.get("grid", {}),
        ],
    } | {name: changes[name] for name in ("measures", "figures", "compute") if name in changes}


def cells(**changes: Any) -> list[Cell]:
    return list(make_plan(config(**changes)).cells)


def network_of(
    members: int = 2,
    length: int = 5,
    symbols: int = 7,
    dtype: torch.dtype = torch.float64,
    noise: float = 0.0,
    seed: int = 0,
    **architecture: Any,
) -> Network:
    """Return small networks at their initial values; with `noise`, each parameter is moved by a draw of this size."""
    (cell,) = cells(architecture=architecture)
    made = build(cell.architecture, Shape("tokens", "classes", length, symbols, symbols), members, dtype)
    made.initialise(list(range(members)))
    generator = torch.Generator().manual_seed(seed)
    for value in made.parameters() if noise else ():
        value.data += noise * torch.randn(value.shape, generator=generator, dtype=value.dtype)
    return made.requires_grad_(False)


def data_of(inputs: Tensor) -> Data:
    """Inputs (K, N, T, ...) that are their own targets, to train on and to test on."""
    return Data({name: Split(inputs, inputs) for name in ("train", "test")}, torch.zeros(len(inputs)))


def dataset_of(train: Tensor, answers: Tensor, test: Tensor, wanted: Tensor, **numbers: Any) -> Dataset:
    """A data set of these tensors."""
    return Dataset({"train": Split(train, answers), "test": Split(test, wanted)}, **numbers)


def each_network(network: Network) -> Iterator[Network]:
    """Each network of a stack, alone."""
    for member in range(len(next(network.parameters()))):
        alone = copy.deepcopy(network)
        for value, whole in zip(alone.parameters(), network.parameters()):
            value.data = whole.data[member : member + 1].clone()
            vars(value).update(vars(whole))
        yield alone


def each_member(context: Context) -> Iterator[Context]:
    """Each network of a stack with its data, as a measure is given them."""
    for member, alone in enumerate(each_network(context.network)):
        own, data = slice(member, member + 1), context.data
        splits = {name: Split(split.inputs[own], split.targets[own]) for name, split in data.splits.items()}
        some = replace(data, splits=splits, chance=data.chance[own])
        yield replace(context, network=alone, data=some, cells=context.cells[own])


def by_member(measure: Callable[..., Rows], context: Context, **options: Any) -> Rows:
    """Rows of each network of a stack, with its number in the stack as `member`."""
    return [
        {"member": member} | row for member, one in enumerate(each_member(context)) for row in measure(one, **options)
    ]


def needed(kind: str, name: str) -> dict[str, Any]:
    """Fields of an architecture that a component REQUIRES, of each the first value that it allows."""
    described = components.describe(kind, name)
    wanted = described.facts.get("REQUIRES", ()) if described else ()
    return {
        field: value[0] if isinstance(value, list) else value for fields, _ in wanted for field, value in fields.items()
    }
