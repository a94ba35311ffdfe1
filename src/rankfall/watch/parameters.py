"""The gradient and the update of every parameter at a logged step.

Weights are copied when the measured pass begins, and compared after the update, so that one step needs the memory of a second copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.streams.names import inner_modules
from rankfall.watch.columns import PARAMETER
from rankfall.watch.gradients import local_part, squared_norm, sum_of_squares
from rankfall.watch.statistics import wide_dtype


class Parameters:
    """The parameters of a model, by their names inside wrappers."""

    def __init__(self, model: nn.Module) -> None:
        by_id: dict[int, tuple[str, nn.Parameter]] = {}
        for name, module in inner_modules(model):
            for key, weight in module.named_parameters(recurse=False):
                by_id.setdefault(id(weight), (f"{name}.{key}".strip("."), weight))
        self.names = [name for name, _ in by_id.values()]
        self.weights = [weight for _, weight in by_id.values()]
        self.before: list[Tensor] = []
        self.versions: list[int] = []
        self.gradients: list[Tensor | None] = []

    def keep_weights(self) -> None:
        """Copy the part of the weights that this process holds."""
        self.before = [local_part(weight.detach(), 0, -1)[0].clone() for weight in self.weights]
        self.versions = [weight._version for weight in self.weights]

    def keep_gradients(self, scale: float, together: bool) -> None:
        self.gradients = [squared_norm([(weight, 0, -1)], scale, together)[0] for weight in self.weights]

    def are_updated(self) -> bool:
        """Return whether an optimiser has written to the weights since they were copied."""
        return any(weight._version != version for weight, version in zip(self.weights, self.versions))

    def take_squares(self, together: bool) -> Tensor:
        """Return the squared norms (P, 3) of gradients, updates and old weights, NaN where not known. Drop the copy of the weights."""
        rows = []
        device = next((weight.device for weight in self.before), torch.device("cpu"))
        none = torch.full((), torch.nan, dtype=wide_dtype(torch.empty(0, device=device)), device=device)
        for weight, before, gradient in zip(self.weights, self.before, self.gradients):
            now, shards = local_part(weight.detach(), 0, -1)
            known = shards == 1 or together
            squares = [shards * sum_of_squares(values) if known else none for values in (now - before, before)]
            rows.append(torch.stack([none if gradient is None else gradient.to(none.device), *squares]))
        self.before = []
        return torch.stack(rows)


def parameter_rows(names: Sequence[str], sums: Tensor, layers: Sequence[str]) -> list[list[dict[str, Any]]]:
    """Return the parameters of each layer, by the names of their modules. Layer 0 gets those outside all layers. `sums` (P, 3, 2)"""
    rows: list[list[dict[str, Any]]] = [[] for _ in layers]
    squares = (sums[..., 0] / sums[..., 1]).tolist()  # 0 / 0 is NaN
    for name, (gradient, update, weight) in zip(names, squares):
        layer = next((number for number, block in enumerate(layers) if block and name.startswith(f"{block}.")), 0)
        ratio = update / weight if weight else float("nan")
        values = [None if not 0 <= square < float("inf") else square**0.5 for square in (gradient, ratio)]
        rows[layer].append({"name": name, **dict(zip(PARAMETER, values))})
    return rows
