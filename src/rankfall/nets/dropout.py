"""Dropout in networks: a function of the activation and of the name of its site in the network."""

from collections.abc import Callable

from torch import Tensor

Dropout = Callable[[Tensor, str], Tensor]


def no_dropout(x: Tensor, site: str) -> Tensor:
    return x
