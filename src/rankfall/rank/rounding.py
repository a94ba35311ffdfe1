"""What of a forward pass is rounding: the same pass once more, with all that enters a block or a norm moved by a few rounding units.

A norm makes rounding larger along with what little it is given, so no fixed floor tells noise from signal; two passes that should be
equal do. They must be compared as matrices: norms of two noises are nearly equal.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rankfall.rank.residual import matrix_norm

if TYPE_CHECKING:
    from rankfall.nets.network import Network

UNITS = 4.0  # about what a sum of some hundred terms is off by
NOISE = 0.1  # of a value: where rounding moves it by more, it is called noise


@contextmanager
def shaken(network: "Network") -> Iterator[None]:
    """While this lasts, states are multiplied by 1 + a few units of random sign where they enter a block or a norm.

    Not at the embedding alone: where a large bias is added later, it would swallow what was moved before.
    """
    generator = torch.Generator().manual_seed(0)

    def shake(_: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        x = arguments[0]  # (K, B, T, D); signs are the same for all members, whoever shares their stack
        signs = 2 * torch.randint(2, x.shape[1:], generator=generator).to(x) - 1
        return (x * (1 + UNITS * torch.finfo(x.dtype).eps * signs), *arguments[1:])

    def norms(module: Any) -> list[Any]:
        return [child for name, child in module.named_children() if name.startswith("norm")]

    moved = [*norms(network), *network.blocks, *(norm for block in network.blocks for norm in norms(block))]
    hooks = [module.register_forward_pre_hook(shake) for module in moved]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def apart(x: Tensor, other: Tensor, norm: str) -> Tensor:
    """How far two matrices (..., T, D) that should be equal are apart, relative to the first: (...); zero where both are."""
    size, gap = matrix_norm(x, norm), matrix_norm(x - other, norm)
    return torch.where(gap > 0, gap / size, torch.zeros_like(gap))


def second_apart(x: Tensor, other: Tensor) -> Tensor:
    """How far all but the first singular direction of x is apart in two passes, relative to sigma_2: (...)."""
    u, values, v = torch.linalg.svd(x, full_matrices=False)
    gap = other - x
    gap = gap - u[..., :1] @ (u[..., :1].mT @ gap)
    gap = matrix_norm(gap - (gap @ v[..., :1, :].mT) @ v[..., :1, :], "spectral")
    return torch.where(gap > 0, gap / values[..., min(1, values.shape[-1] - 1)], torch.zeros_like(gap))
