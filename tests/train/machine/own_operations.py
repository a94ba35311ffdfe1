"""MLPs of a user's with operations that PyTorch has kernels for. Each function is the nonlinearity, of x (K, B, T, D)."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from rankfall.nets.mlps._mlp import Mlp


def mlp(function: Callable[[Tensor], Tensor]) -> partial[Mlp]:
    """Return what makes an MLP with this nonlinearity."""
    return partial(Mlp, activation=function)


near_gelu = mlp(partial(functional.gelu, approximate="tanh"))


@mlp
def tokens_by_number(x: Tensor) -> Tensor:
    """Add to every token what some of them are: the third twice, others not at all, and features of some by their number."""
    some = x[..., 0, :] * x[..., 2, :] + x[..., 2, :].sin()
    return x * some.unsqueeze(-2) + (x[..., 1] * x[..., -1] - x[..., 1]).unsqueeze(-1)


@mlp
def kinked(x: Tensor) -> Tensor:
    x = functional.leaky_relu(x, 0.1) + functional.hardtanh(x, -0.3, 0.2)
    return x + functional.hardswish(8 * x) + functional.relu6(9 * x)


@mlp
def rare(x: Tensor) -> Tensor:
    """Compute what PyTorch has a kernel for, and the machine two or three operations."""
    powers = torch.exp2(x) + torch.log2(x.square() + 1) + torch.log10(x.square() + 1)
    whole = x - (3 * x).ceil() / 9 + (4 * x).trunc() / 7
    places = torch.logical_xor(x > 0, x > 0.5) | (x / x.relu()).isnan() | (x.abs() / x.relu()).isinf()
    grouped = functional.group_norm(x.flatten(0, 2), 2).view(x.shape)
    return powers + whole.masked_fill(places, 0.1).nan_to_num() + grouped


@mlp
def largest(x: Tensor) -> Tensor:
    most, place = x.max(2, keepdim=True)
    return x + most + x.min(-1, keepdim=True).values * 0.5 + x.gather(2, place) * 0.1


@mlp
def rounded(x: Tensor) -> Tensor:
    """Round halves to the even number."""
    halves = (x * 8).floor() / 2
    return x + (halves.round() - x).detach() + (x * 3).round()


@mlp
def stepped(x: Tensor) -> Tensor:
    """Read and write every second and third, as rotary positions are often computed."""
    even, odd = x[..., ::2], x[..., 1::2]
    turned = torch.empty_like(x)
    turned[..., ::2], turned[..., 1::2] = even * 0.6 - odd * 0.8, even * 0.8 + odd * 0.6
    turned[:, :, 1:-1:3] = 0.5
    return turned + x[..., 1::3].sum(-1, keepdim=True) + functional.pad(x[:, :, 2::2], (0, 0, 4, 0))[:, :, :5]


@mlp
def written(x: Tensor) -> Tensor:
    """Write into a part of a tensor, by its place or a mask; token by token; and into a part where it lies."""
    shifted, state = torch.zeros_like(x), x * 2
    shifted[:, :, 1:] = x[:, :, :-1]
    for t in range(1, x.shape[2]):
        state[:, :, t] += state[:, :, t - 1] * 0.5
    state[:, :, -1, 0] = x.mean((2, 3))
    state[..., 1][:, :, 2].mul_(3)
    state[:, :, 1:][..., :2] -= 1
    part = state[:, :, 1:]
    part += part[..., :1].clone()  # the whole too, and what is read of it under this name
    state[:, :, 2] *= 2
    state[..., 3:5] = torch.cat([part, part[:, :, -1:]], 2)[..., 3:5]
    shifted[shifted > 0.5] = 0.1
    shifted[...] += state
    return shifted.clamp_(min=-2)


@mlp
def diagonal(x: Tensor) -> Tensor:
    every = torch.einsum("kbtd,kbsd->kbts", x, x)
    same, next_token = every.diagonal(dim1=-2, dim2=-1), every.diagonal(1, -2, -1)  # (K, B, T) and (K, B, T - 1)
    return x * same.unsqueeze(-1) + functional.pad(next_token, (0, 1)).unsqueeze(-1)


@mlp
def fused(x: Tensor) -> Tensor:
    """Apply PyTorch's attention over four dimensions, of which it takes other kernels than over five."""
    each = x.flatten(0, 1).unsqueeze(1)
    return functional.scaled_dot_product_attention(each, each, each, is_causal=True).view(x.shape)


@mlp
def rearranged(x: Tensor) -> Tensor:
    """Put features and tokens into one row, and cut it again at other places."""
    return x.movedim(-1, 2).reshape(x.shape)


@mlp
def ordered(x: Tensor) -> Tensor:
    return x.sort(-1).values


@mlp
def counted(x: Tensor) -> Tensor:
    """Multiply integers, which may become large."""
    return x * (x.argmax(-1, keepdim=True) * 10_000_003 % 7).to(x.dtype)
