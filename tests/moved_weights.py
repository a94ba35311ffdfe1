"""A network of which no weight, bias or gain is where it starts, and inputs for it."""

from typing import Any

import torch
from helpers import cells

from rankfall.nets.network import Network, Shape, build

INPUTS = torch.randint(7, (2, 3, 5), generator=torch.Generator().manual_seed(1))


def network(**architecture: Any) -> Network:
    """Two members in float64, with other weights than at the start, where a bias or a gain may be trivial."""
    cell = cells(architecture={"depth": 2, "heads": 2, "width": 8} | architecture)[0]
    made = build(cell.architecture, Shape("tokens", "classes", length=5, size_in=7, size_out=7), 2, torch.float64)
    made.initialise([0, 1])
    generator = torch.Generator().manual_seed(0)
    for value in made.parameters():
        value.data += 0.3 * torch.randn(value.shape, generator=generator, dtype=value.dtype)
    return made.requires_grad_(False)
