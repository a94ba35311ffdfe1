"""The seam where dropout enters a network: a function of the activation and the name of the place."""

from collections.abc import Callable

from torch import Tensor

Dropout = Callable[[Tensor, str], Tensor]


def no_dropout(x: Tensor, site: str) -> Tensor:
    return x
