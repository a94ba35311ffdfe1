"""A measure applied to trained cells: their networks are rebuilt as one stack, with their data."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rankfall.measures._context import Context, Rows
from rankfall.nets.network import Shape, build
from rankfall.train.data import Data

if TYPE_CHECKING:
    from rankfall.design import Designed
    from rankfall.train.resume import Checkpoint


def apply(
    measure: Callable[[Context], Rows],
    cells: "Sequence[Designed]",
    shape: Shape,
    weights: dict[str, Tensor],
    data: Data,
    device: torch.device,
    checkpoint: "Checkpoint",
) -> list[Rows]:
    """The rows of each cell, by a measure whose options are bound. `weights` are (K, ...), in the order of `cells`, which belong to
    one group."""
    dtype = getattr(torch, cells[0].training.dtype)
    network = build(cells[0].architecture, shape, len(cells), dtype)
    missing, unknown = network.load_state_dict(weights, strict=False)
    # A position shared by all layers is stored under its first name only; any other missing parameter would be uninitialised.
    wrong = [*unknown, *(name for name, _ in network.named_parameters() if name in missing)]
    if wrong:
        raise RuntimeError(f"stored weights and network do not have the same parameters: {', '.join(wrong)}")
    network.to(device).requires_grad_(False)
    found: list[Rows] = [[] for _ in cells]
    for row in measure(Context(network, data, cells, device=device, checkpoint=checkpoint)):
        found[row.pop("member")].append(row)
    return found
