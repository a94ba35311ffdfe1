"""No special tokens."""

from rankfall.nets.primitives import Sizes

COUNT = 0


def none(sizes: Sizes) -> None:
    return None
