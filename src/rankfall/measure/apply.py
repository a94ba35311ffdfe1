"""Apply a measure to a trained cell, whose network is rebuilt without the other members of its stack.

Cells are trained in stacks and measured one at a time: matrix products, sums and searches of a stack may differ in their last bits from
those of one member, and a measure that a user wrote may mix members.
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
    from rankfall.train.loop import Checkpoint


def apply(
    measure: Callable[[Context], Rows],
    cell: "Designed",
    shape: Shape,
    weights: dict[str, Tensor],
    data: Data,
    device: torch.device,
    checkpoint: "Checkpoint",
) -> Rows:
    """Return the rows of a cell from a measure whose options are bound. `weights` and `data` are the cell's (1, ...)."""
    network = build(cell.architecture, shape, 1, getattr(torch, cell.training.dtype))
    # Copied, so that weights begin at aligned addresses: elsewhere kernels may round differently.
    missing, unknown = network.load_state_dict(weights, strict=False)
    # A position shared by all layers is stored under its first name only. Any other missing parameter would keep arbitrary values.
    wrong = [*unknown, *(name for name, _ in network.named_parameters() if name in missing)]
    if wrong:
        raise RuntimeError(f"stored weights and network do not have the same parameters: {', '.join(wrong)}")
    network.to(device).requires_grad_(False)
    rows = measure(Context(network, data, [cell], device=device, checkpoint=checkpoint))
    # Measures that were written for several members number them; a cell has one member.
    return [{name: value for name, value in row.items() if name != "member"} for row in rows]
