"""A network of which no weight, bias or gain is where it starts, and inputs for it."""

from functools import partial

import torch
from helpers import network_of

INPUTS = torch.randint(7, (2, 3, 5), generator=torch.Generator().manual_seed(1))


# Two members in float64, with other weights than at the start, where a bias or a gain may be trivial.
network = partial(network_of, noise=0.3)
