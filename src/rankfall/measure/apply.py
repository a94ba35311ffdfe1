"""A measure applied to a trained cell: its network is rebuilt, alone, with its data.

Cells are trained in stacks and measured one by one. Products of matrices, sums and searches of a stack may end in other bits than those of
its members alone, and a measure may be anybody's. What is not there cannot matter.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rankfall.measure.context import Context, Rows
from rankfall.nets.network import Shape, build
from rankfall.train.data import Data

if TYPE_CHECKING:
    from rankfall.design import Designed
    from rankfall.train.resume import Checkpoint


def apply(
    measure: Callable[[Context], Rows],
    cell: "Designed",
    shape: Shape,
    weights: dict[str, Tensor],
    data: Data,
    device: torch.device,
    checkpoint: "Checkpoint",
) -> Rows:
    """The rows of a cell, by a measure whose options are bound. `weights` and `data` are the cell's own (1, ...)."""
    network = build(cell.architecture, shape, 1, getattr(torch, cell.training.dtype))
    # As copies, which begin where memory is aligned: kernels may round otherwise elsewhere.
    missing, unknown = network.load_state_dict(weights, strict=False)
    # A position shared by all layers is stored under its first name only; any other missing parameter would be uninitialised.
    wrong = [*unknown, *(name for name, _ in network.named_parameters() if name in missing)]
    if wrong:
        raise RuntimeError(f"stored weights and network do not have the same parameters: {', '.join(wrong)}")
    network.to(device).requires_grad_(False)
    rows = measure(Context(network, data, [cell], device=device, checkpoint=checkpoint))
    return [{name: value for name, value in row.items() if name != "member"} for row in rows]
