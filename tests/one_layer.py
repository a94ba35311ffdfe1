"""Networks whose layers are looked at one by one, and states to give them."""

from typing import Any

import torch
from helpers import network_of
from torch import Tensor

from rankfall.nets.network import Network


def network(length: int = 6, members: int = 2, **architecture: Any) -> Network:
    """Untrained, in float64, with parameters of order one wherever a start would hide a term."""
    bare = {"depth": 1, "width": 6, "norm": "none", "residual": "none", "position": "none"}
    return network_of(members, length, 5, noise=0.4, **bare | architecture)


def states(length: int, members: int = 2, width: int = 6) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(members, 3, length, width, generator=generator, dtype=torch.float64)
