"""Share of rounding in a result, by a second forward pass in which the input of each block and norm is changed by a few rounding units.

A norm amplifies small signals and rounding alike, so no fixed floor separates them. The difference of two passes that should be equal
does. They must be compared as matrices, because the norms of two rounding errors are nearly equal.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.nets.network import Network
from rankfall.rank.powers import exponent_of, shift
from rankfall.rank.residual import matrix_norm, matrix_norms

UNITS = 4.0  # approximate error of a sum of some hundred terms
NOISE = 0.1  # a value counts as rounding if the second pass differs by more than this share of it


@contextmanager
def shaken(network: Network) -> Iterator[None]:
    """Multiply states by 1 + a few units of random sign where they enter a block or a norm, within this context.

    A change of the embedding alone could be rounded away where a large bias is added later.
    """
    generator = torch.Generator().manual_seed(0)

    def shake(_: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        x = arguments[0]  # (K, B, T, D); the same signs for all members, so that the stack does not matter
        signs = 2 * torch.randint(2, x.shape[1:], generator=generator).to(x) - 1
        return (x * (1 + UNITS * torch.finfo(x.dtype).eps * signs), *arguments[1:])

    norms = (norm for owner in (network, *network.blocks) for _, norm in norms_in(owner))
    with called_first(shake, [*network.blocks, *norms]):
        yield


@contextmanager
def called_first(hook: Callable[[nn.Module, Any], Any], modules: Iterable[nn.Module]) -> Iterator[None]:
    """Call a hook before each of these modules, within this context."""
    handles = [module.register_forward_pre_hook(hook) for module in modules]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def norms_in(module: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return the names and modules of the norms of a network or a block."""
    return [(name, child) for name, child in module.named_children() if name.startswith("norm")]


def relative_difference(x: Tensor, other: Tensor, norm: str) -> Tensor:
    """Return the difference of two matrices (..., T, D) that should be equal, relative to the first: (...); zero where they are equal."""
    return relative_differences(x, other, [norm])[norm]


def relative_differences(x: Tensor, other: Tensor, norms: Sequence[str]) -> dict[str, Tensor]:
    """Return the relative difference in several norms, with shared sums computed once."""
    x, other = same_size(x, other)
    sizes, gaps = matrix_norms(x, norms), matrix_norms(x - other, norms)
    return {norm: torch.where(gap > 0, gap / sizes[norm], torch.zeros_like(gap)) for norm, gap in gaps.items()}


def second_difference(x: Tensor, other: Tensor) -> Tensor:
    """Return the difference of two passes without the first singular direction of x, relative to sigma_2: (...)."""
    x, other = same_size(x, other)
    u, values, v = torch.linalg.svd(x, full_matrices=False)
    gap = other - x
    gap = gap - u[..., :1] @ (u[..., :1].mT @ gap)
    gap = matrix_norm(gap - (gap @ v[..., :1, :].mT) @ v[..., :1, :], "spectral")
    return torch.where(gap > 0, gap / values[..., min(1, values.shape[-1] - 1)], torch.zeros_like(gap))


def same_size(x: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Scale both by the power of two that makes the first a unit."""
    exponent = exponent_of(x)[..., None, None]
    return shift(x, -exponent), shift(other, -exponent)
