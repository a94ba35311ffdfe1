"""Networks whose layers are looked at one by one, and states to give them."""

from typing import Any

import torch
from helpers import cells
from torch import Tensor

from rankfall.nets.network import Network, Shape, build


def network(length: int = 6, members: int = 2, **architecture: Any) -> Network:
    """Untrained, in float64, with parameters of order one wherever a start would hide a term."""
    chosen = {"depth": 1, "width": 6, "norm": "none", "residual": "none", "position": "none"} | architecture
    cell = cells(architecture=chosen)[0]
    made = build(cell.architecture, Shape("tokens", "classes", length, 5, 5), members, torch.float64)
    made.initialise(list(range(members)))
    generator = torch.Generator().manual_seed(0)
    for value in made.parameters():
        value.data += 0.4 * torch.randn(value.shape, generator=generator, dtype=value.dtype)
    return made.requires_grad_(False)


def states(length: int, members: int = 2, width: int = 6) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(members, 3, length, width, generator=generator, dtype=torch.float64)
