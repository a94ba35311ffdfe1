"""Networks at random weights, which show what an architecture can do.

Every parameter is drawn around its start, including those that start at a constant such as zero or one (a norm's gain, URPE's factors,
buckets of a bias). Weights keep states and scores of order one. The draw depends on the parameter's name, shape and role only, so that
architectures share the parameters that they have in common.
"""

from functools import lru_cache

import torch
from torch import Tensor

from rankfall.design import Architecture
from rankfall.nets.network import Network, Shape, build
from rankfall.nets.primitives import Initial
from rankfall.random_streams import stream

SPREAD = 0.5  # standard deviation of biases, positions and parameters that start at a constant


def random_networks(design: Architecture, shape: Shape, draws: int) -> Network:
    """Build one network per draw, in float64.

    Networks share the tensors that they have in common, so these must not be written to.
    """
    network = build(design, shape, draws, torch.float64)
    for name, value in network.named_parameters():
        start: Initial = value.initial  # type: ignore[attr-defined]
        value.data = draw_initial(name, start, tuple(value.shape[1:]), draws)
    return network


@lru_cache(maxsize=1024)
def draw_initial(name: str, start: Initial, shape: tuple[int, ...], draws: int) -> Tensor:
    """Draw a parameter for `draws` networks, with shape (K, *shape)."""
    normal = torch.stack([torch.from_numpy(stream(k, "probe", name).normal(size=shape)) for k in range(draws)])
    if start.kind == "constant":
        return start.constant + SPREAD * normal
    if start.kind == "bias" or start.role == "position":
        return SPREAD * normal
    return normal * (1.0 if start.role == "embedding" else start.fan_in**-0.5)


def last_rows(network: Network, tokens: int) -> Tensor:
    """Return the rows (K, n, D) that the head receives for n equal tokens."""
    members = len(next(network.parameters()))
    equal = torch.zeros(members, 1, tokens, dtype=torch.int64)
    with torch.no_grad():
        return network.features(equal)[:, 0]
