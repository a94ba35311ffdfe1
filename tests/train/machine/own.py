"""Components as a stranger writes them."""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from rankfall.nets.dropout import Dropout, no_dropout
from rankfall.nets.normalisers._prepared import prepared
from rankfall.nets.primitives import Linear, Sizes
from rankfall.streams import stream
from rankfall.train.objectives._base import Graded, Samples
from rankfall.train.objectives.classes import classes


class Gated(nn.Module):
    """Softmax attention whose output is gated by a sigmoid of the input."""

    def __init__(self, sizes: Sizes, position: nn.Module, normaliser: nn.Module, mask: nn.Module, site: str) -> None:
        super().__init__()
        inner = sizes.heads * sizes.head_width
        self.heads, self.site = sizes.heads, site
        self.q, self.k, self.v, self.gate = (
            Linear(sizes, sizes.width, inner, role) for role in ("q", "k", "v", "gate")
        )
        self.out = Linear(sizes, inner, sizes.width, "output")
        self.position, self.normaliser, self.mask = position, normaliser, mask

    def split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, -1).transpose(2, 3)

    def weights(self, x: Tensor) -> Tensor:
        q, k = prepared(self.normaliser, self.split(self.q(x)), self.split(self.k(x)))
        q, k = self.position.rotate(q, k)
        scores = self.position.bias(self.position.products(q, k) * q.shape[-1] ** -0.5)
        mask = self.mask(x.shape[2], x.device)
        return self.normaliser(scores if mask is None else scores.masked_fill(~mask, -torch.inf))

    def forward(self, x: Tensor, drop: Dropout = no_dropout) -> Tensor:
        weights = drop(self.weights(x), f"{self.site}.weights")
        mixed = self.position.context(weights, self.split(self.v(x))).transpose(2, 3).flatten(-2)
        return self.out(torch.sigmoid(self.gate(x)) * mixed)


class Delta(nn.Module):
    """The delta rule: S <- S (1 - b k k^T) + b v k^T, token by token, read by S q."""

    def __init__(self, sizes: Sizes, position: nn.Module, normaliser: nn.Module, mask: nn.Module, site: str) -> None:
        super().__init__()
        inner = sizes.heads * sizes.head_width
        self.heads, self.each = sizes.heads, sizes.head_width
        self.q, self.k, self.v = (Linear(sizes, sizes.width, inner, role) for role in ("q", "k", "v"))
        self.rate, self.out = (
            Linear(sizes, sizes.width, sizes.heads, "rate"),
            Linear(sizes, inner, sizes.width, "output"),
        )

    def split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, -1).transpose(2, 3)

    def forward(self, x: Tensor, drop: Dropout = no_dropout) -> Tensor:
        q, k, v = self.split(self.q(x)), normalize(self.split(self.k(x)), dim=-1), self.split(self.v(x))
        rate = torch.sigmoid(self.rate(x)).transpose(2, 3)  # (K, B, H, T)
        state = x.new_zeros(*q.shape[:3], self.each, self.each)
        found = []
        for t in range(x.shape[2]):
            key = k[..., t, :].unsqueeze(-1)
            new = rate[..., t, None, None] * (v[..., t, :].unsqueeze(-1) - state @ key)
            state = state + new * key.transpose(-1, -2)
            found.append((state @ q[..., t, :].unsqueeze(-1)).squeeze(-1))
        return self.out(torch.stack(found, 3).transpose(2, 3).flatten(-2))


def noisy(logits: Tensor) -> Tensor:
    """A normaliser that draws."""
    return (logits + torch.rand_like(logits)).softmax(-1)


def by_value(logits: Tensor) -> Tensor:
    """A normaliser that decides by a number of the data."""
    return logits.softmax(-1) if float(logits.max()) > 0 else logits.sigmoid()


def picked(logits: Tensor) -> Tensor:
    """A normaliser whose shapes depend on the data."""
    return logits.softmax(-1) * (logits[logits > 0].numel() + 1)


def in_double(logits: Tensor) -> Tensor:
    """A normaliser that computes in another number format."""
    return (logits.double() if logits.dtype == torch.float32 else logits.float()).softmax(-1).to(logits.dtype)


def drawn(module: nn.Module, batch: Samples, drop: Dropout = no_dropout) -> Graded:
    """An objective that draws in Python, by the place of the batch."""
    graded = classes(module, batch, drop)
    return Graded(graded.loss * stream(0, "drawn", *batch.place).random(), graded.asked)


def seeded(module: nn.Module, batch: Samples, drop: Dropout = no_dropout) -> Graded:
    """An objective that draws in Python, by the member."""
    graded = classes(module, batch, drop)
    return Graded(graded.loss * stream(batch.seeds[0], "drawn").random(), graded.asked)
