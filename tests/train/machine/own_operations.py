"""MLPs of a stranger's with operations that PyTorch has kernels of its own for."""

import torch
from torch import Tensor
from torch.nn import functional

from rankfall.nets.mlps._mlp import Mlp
from rankfall.nets.primitives import Sizes


class Own(Mlp):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes, self.apply_own)

    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        """x (K, B, T, D)"""
        raise NotImplementedError


class Kinked(Own):
    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        x = functional.leaky_relu(x, 0.1) + functional.hardtanh(x, -0.3, 0.2)
        return x + functional.hardswish(8 * x) + functional.relu6(9 * x)


class Rare(Own):
    """What PyTorch has a kernel for, and the machine two or three operations."""

    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        powers = torch.exp2(x) + torch.log2(x.square() + 1) + torch.log10(x.square() + 1)
        whole = x - (3 * x).ceil() / 9 + (4 * x).trunc() / 7
        places = torch.logical_xor(x > 0, x > 0.5) | (x / x.relu()).isnan() | (x.abs() / x.relu()).isinf()
        grouped = functional.group_norm(x.flatten(0, 2), 2).view(x.shape)
        return powers + whole.masked_fill(places, 0.1).nan_to_num() + grouped


class Largest(Own):
    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        found, place = x.max(2, keepdim=True)
        return x + found + x.min(-1, keepdim=True).values * 0.5 + x.gather(2, place) * 0.1


class Rounded(Own):
    """Halves are rounded to the even number."""

    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        halves = (x * 8).floor() / 2
        return x + (halves.round() - x).detach() + (x * 3).round()


class Stepped(Own):
    """Every second and third, read and written, as rotary positions are often computed."""

    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        even, odd = x[..., ::2], x[..., 1::2]
        turned = torch.empty_like(x)
        turned[..., ::2], turned[..., 1::2] = even * 0.6 - odd * 0.8, even * 0.8 + odd * 0.6
        turned[:, :, 1:-1:3] = 0.5
        return turned + x[..., 1::3].sum(-1, keepdim=True) + functional.pad(x[:, :, 2::2], (0, 0, 4, 0))[:, :, :5]


class Written(Own):
    """Into a part of a tensor, by its place or a mask; token by token; and a part that is changed where it lies."""

    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
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


class Diagonal(Own):
    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        every = torch.einsum("kbtd,kbsd->kbts", x, x)
        own, next_one = every.diagonal(dim1=-2, dim2=-1), every.diagonal(1, -2, -1)  # (K, B, T) and (K, B, T - 1)
        return x * own.unsqueeze(-1) + functional.pad(next_one, (0, 1)).unsqueeze(-1)


class Fused(Own):
    """PyTorch's attention over four dimensions, of which it takes other kernels than over five."""

    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        each = x.flatten(0, 1).unsqueeze(1)
        return functional.scaled_dot_product_attention(each, each, each, is_causal=True).view(x.shape)


class Ordered(Own):
    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        return x.sort(-1).values


class Counted(Own):
    """Products of integers that may become large."""

    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        return x * (x.argmax(-1, keepdim=True) * 10_000_003 % 7).to(x.dtype)
