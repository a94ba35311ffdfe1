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
        near = functional.softshrink(x, 0.2) + functional.hardshrink(x, 0.3) + torch.hypot(x, x + 1)
        powers = torch.exp2(x) + torch.log2(x.square() + 1) + torch.log10(x.square() + 1)
        whole = x - (3 * x).ceil() / 9 + (4 * x).trunc() / 7
        places = torch.logical_xor(x > 0, x > 0.5) | (x / x.relu()).isnan() | (x.abs() / x.relu()).isinf()
        grouped = functional.group_norm(x.flatten(0, 2), 2).view(x.shape)
        return near + powers + whole.masked_fill(places, 0.1).nan_to_num() + grouped


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


class Sorted(Own):
    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        down, place = x.sort(-1, descending=True)
        return x.sort(2).values + down * torch.linspace(0, 1, x.shape[-1], dtype=x.dtype) + x.gather(-1, place.flip(-1))


class SortedStably(Own):
    """Half of the numbers are 0, and their places matter."""

    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        up, place = x.relu().sort(dim=-1, stable=True)
        ramp = torch.linspace(0, 1, x.shape[-1], dtype=x.dtype)
        return x + up + x.gather(-1, place) * ramp + x.gather(-1, x.abs().argmin(-1, keepdim=True))


class SortedAnyhow(Own):
    """Of equal numbers PyTorch may take any, and the places matter."""

    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        place, few = x.relu().sort(-1, descending=True).indices, x.relu().topk(24, -1).indices
        ramp = torch.linspace(0, 1, x.shape[-1], dtype=x.dtype)
        again = x.gather(2, (-x).relu().argsort(2)) * torch.linspace(0, 1, x.shape[2], dtype=x.dtype).view(-1, 1)
        return x + x.gather(-1, place) * ramp + x.gather(-1, few).sum(-1, keepdim=True) + again


class Constants(Own):
    """What no data enter is computed at once, whatever it is."""

    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        width = x.shape[-1]
        mixed = torch.tensor([5 * i % width for i in range(width)]).argsort()
        decay = torch.full((64,), 0.9).cumprod(0)[:width].to(x.dtype)
        few = torch.linspace(-1, 1, 40).abs().topk(3).values.sum() + torch.tensor([2, 3]).prod(0)
        return x[..., mixed] * decay * float(few) + (torch.arange(width) > 2).max(0).values


def sparse(logits: Tensor) -> Tensor:
    """A normaliser, sparsemax: sorted, added up, cut. Scores that a mask hides are -inf, several of them equal."""
    hidden, count = logits == -torch.inf, torch.arange(1, logits.shape[-1] + 1, dtype=logits.dtype)
    ordered, place = logits.sort(-1, descending=True)
    ordered = ordered.masked_fill(hidden.to(logits.dtype).gather(-1, place) != 0, -100.0)
    total = ordered.cumsum(-1)
    last = (1 + count * ordered > total).sum(-1, keepdim=True) - 1
    return (logits - (total.gather(-1, last) - 1) / (last + 1)).clamp(min=0)


def two_largest(logits: Tensor) -> Tensor:
    """A normaliser: of a row with one entry, the second is one that the mask hides."""
    return logits.masked_fill(logits < logits.topk(2, -1).values[..., 1:], -torch.inf).softmax(-1)


class Few(Own):
    """What is not among the three largest is 0."""

    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        largest, smallest = x.topk(3, -1).values, x.topk(2, 2, largest=False).values
        return x.masked_fill(x < largest[..., -1:], 0.0) + largest.sum(-1, keepdim=True) + smallest.sum(2, keepdim=True)


def scattered_back(logits: Tensor) -> Tensor:
    """The usual way to attend to the two largest."""
    values, places = logits.topk(min(2, logits.shape[-1]), -1)
    return torch.full_like(logits, -torch.inf).scatter(-1, places, values).softmax(-1)


class PutBack(Own):
    """In order, changed and back in its place, by the inverse of the order; and written and added into what is there."""

    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        ordered, places = x.sort(-1)
        changed = ordered * torch.linspace(0.5, 1.5, x.shape[-1])
        back = torch.take_along_dim(changed, places.argsort(-1), -1)
        behind = torch.take_along_dim(x, places[..., :2] - x.shape[-1], -1)  # the same places, counted from the end
        first = places[..., :1]
        written = x.scatter(-1, first, 2 * behind[..., :1]).scatter(2, first.argsort(2), 0.25)
        return back + written + x.scatter_add(-1, places[..., 1:4], x[..., :3].tanh())


class Multiplied(Own):
    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        kept = torch.sigmoid(x)
        return kept.cumprod(2) + kept[..., :3].prod(-1, keepdim=True) + kept.prod(2, keepdim=True)


class OfNothing(Own):
    """Decays between two tokens, of which the nearest have none between them."""

    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        kept, some = torch.sigmoid(x), []
        for t in range(x.shape[2]):
            some.append(sum(x[:, :, s] * kept[:, :, s + 1 : t + 1].prod(2) for s in range(t + 1)))
        none = x[..., :0]
        nothing = none.sort(-1).values.sum(-1) + x.topk(0, -1).values.sum(-1) + none.cumprod(-1).sum(-1)
        return torch.stack(some, 2) + nothing.unsqueeze(-1)  # type: ignore[arg-type]


class JoinedToNothing(Own):
    """As what is kept of earlier tokens is before there are any; and nothing written somewhere."""

    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        before, after = torch.zeros(*x.shape[:2], 0, x.shape[-1]), torch.tensor([])
        whole = torch.cat([before.to(x.dtype), x, after.to(x.dtype)], 2)
        written = whole.scatter(-1, x.topk(0, -1).indices, 5.0) + torch.slice_scatter(x, x[:, :, :0], 2, 1, 1)
        return written * functional.pad(x[..., :0], (0, x.shape[-1]), value=0.7)


class FromTheEnd(Own):
    """Negative places in brackets, that data say and that none do."""

    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        few, table = x[..., torch.tensor([[-1, 0], [2, -1]])], torch.linspace(-1, 1, 3 * x.shape[-1], dtype=x.dtype)
        said = table.view(-1, 3)[x.argsort(-1) - 16]  # (K, B, T, D, 3)
        return x * said.sum(-1) + few.sum((-1, -2)).unsqueeze(-1) + x[:, :, torch.tensor([-1])]


class Whole(Own):
    """Integers hold no fractions of what is written into them; what is not 0 is true; a one-hot row of an infinite number."""

    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        places, first = x.argsort(-1), x.argmax(-1, keepdim=True)
        scale = torch.full_like(x, 2.7, dtype=torch.int64) + places.scatter(-1, first, 1.7)
        scale = scale + functional.pad(places[..., 1:], (1, 0), value=-2.7)
        some = (-x.relu()).any(2, keepdim=True).to(x.dtype) + (places[..., :2] - 5).any(-1, keepdim=True)
        rest = (x + torch.zeros_like(x).scatter(-1, first, -torch.inf)).softmax(-1)
        return x * scale * some + rest


class Counted(Own):
    """Products of integers that stay small, and remainders of negative ones."""

    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        places = x.argsort(-1)
        mixed = (places * 971 + places.flip(-1) * places) % 31 * 97 % 29
        negative = (places - 16) % 5 + (16 - places) // 3 + (places - 9) % -4
        return x * (mixed + negative).to(x.dtype) / 16


class Hashed(Own):
    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        return x * (x.argsort(-1) * 1_000_003 % 7).to(x.dtype)


class HashedPairs(Own):
    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        places = x.argsort(-1) * 1000
        return x * ((places @ places.mT).sum(-1, keepdim=True) % 7).to(x.dtype)


class Wrapped(Own):
    """Less than 0 in a format that has no such numbers."""

    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        return x * ((x > 0).to(torch.uint8) - 1).to(x.dtype)


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


class Apart(Own):
    """What was a part, and then is laid otherwise, cut off from its history, or taken without one; and parts within `vmap`."""

    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        square = x @ x.mT + x[..., :1]
        turned = square[:, :1]
        turned.transpose_(2, 3)  # the numbers stay where they are
        ended = x * 2
        before = ended[..., 1:]
        ended.detach_()  # `before` is not
        held = x * 3
        with torch.no_grad():
            constant = held[..., 0]
        held[..., 0] = constant
        ones = torch.empty_like(x)
        torch.nn.init.ones_(ones[..., 1:])
        torch.nn.init.constant_(ones[..., 0], 2.0)

        def shift(one: Tensor) -> Tensor:
            one = one * 2
            one[:, 0] = one[:, 1]
            return one

        joined = functional.pad(before, (1, 0)) * ended + held * held * ones
        return square @ joined + torch.func.vmap(shift, 1, 1)(x)


class Overlapped(Own):
    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        whole = x * 2
        whole[:, :, 1:] = whole[:, :, :-1]
        return whole


class Added(Own):
    """To a tensor what lies in it."""

    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        whole = x * 2
        whole += whole[:, :, :1]
        return whole


class OverlappedByView(Own):
    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        whole = x * 2
        whole[:, :, 1:] = whole.narrow(2, 0, x.shape[2] - 1)
        return whole


class OverlappedByConstant(Own):
    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        whole = x * 2
        whole[:, :, 1:] = whole.detach()[:, :, :-1]
        return whole


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


class Shared(Own):
    """Changed where it lies, through what is no part in brackets."""

    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        whole = x * 2
        whole.transpose(1, 2)[:, 0] = x[:, :, 0]
        return whole


class SortedFar(Own):
    @staticmethod
    def apply_own(x: Tensor) -> Tensor:
        return functional.pad(x, (0, 40)).sort(-1).values[..., : x.shape[-1]]
