"""No position encoding: the network is equivariant under permutations of its tokens."""

from rankfall.nets.positions._base import Position
from rankfall.nets.primitives import Sizes

TOUCHES = ()
SEES = "nothing"
ADMITS = "any"


def none(sizes: Sizes) -> Position:
    return Position()
