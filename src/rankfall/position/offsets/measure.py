"""Terms by offset: the bias B that a position adds to scores, and the factors C that URPE multiplies weights by (Luo et al. 2022).

Both are Toeplitz matrices for each head, b_{i-j} and c_{i-j}, and thus have one number for each offset i - j. They are read at the
length of training, sentinels included. A bias that is the same at all offsets has no effect under a softmax.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from rankfall.errors import RankfallError
from rankfall.measure.context import Context
from rankfall.nets.network import Network
from rankfall.nets.positions._base import Position

USES = (("bias by offset", "factors by offset"),)


@torch.no_grad()
def offsets(context: Context) -> list[dict[str, Any]]:
    """Return every term of every head."""
    network = context.network
    length = network.lift(context.data.test.inputs[:, :1]).shape[2]
    rows = []
    for which, layer, matrix in terms(network, length):
        for head, numbers in enumerate(by_offset(matrix)[0].double().cpu().tolist(), 1):  # 2T - 1 numbers
            labels = {"which": which, "layer": layer, "of_head": head}
            rows += [labels | {"offset": o, "value": value} for o, value in enumerate(numbers, 1 - length)]
    return rows


def terms(network: Network, length: int) -> Iterator[tuple[str, int | None, Tensor]]:
    """Yield (name, layer or None if all layers share the term, matrix (K, 1, H, T, T))."""
    like = next(network.parameters())
    position = network.position
    if type(position).bias is not Position.bias:
        yield "B", None, position.bias(like.new_zeros(len(like), 1, 1, length, length))
    normalisers = {}
    for layer, block in enumerate(network.blocks, 1):
        normaliser: Any = getattr(block.attention, "normaliser", None)
        if hasattr(normaliser, "factors"):
            normalisers[id(normaliser)] = (layer, normaliser)
    for layer, normaliser in normalisers.values():
        yield "C", layer if len(normalisers) > 1 else None, normaliser.factors(length)


def by_offset(matrix: Tensor) -> Tensor:
    """Convert Toeplitz matrices (K, 1, H, T, T) to (K, H, 2T - 1), ordered by offset.

    Row 0 backwards has the offsets 1 - T .. 0, column 0 has 0 .. T - 1.
    """
    rows, columns = matrix[:, 0, :, 0].flip(-1), matrix[:, 0, :, 1:, 0]
    if not torch.equal(matrix[..., 1:, 1:], matrix[..., :-1, :-1]):
        raise RankfallError(
            "measure offsets: the position's bias depends on more than the offset; choose other architectures by `cells`"
        )
    return torch.cat([rows, columns], -1)
