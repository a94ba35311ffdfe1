"""Attentions as a user writes them, for the benchmarks of the engines."""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from rankfall.nets.attentions._heads import prepare
from rankfall.nets.primitives import Dropout, Linear, Sizes, no_dropout


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
        q, k = prepare(self.normaliser, self.split(self.q(x)), self.split(self.k(x)))
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
        outputs = []
        for t in range(x.shape[2]):
            key = k[..., t, :].unsqueeze(-1)
            new = rate[..., t, None, None] * (v[..., t, :].unsqueeze(-1) - state @ key)
            state = state + new * key.transpose(-1, -2)
            outputs.append((state @ q[..., t, :].unsqueeze(-1)).squeeze(-1))
        return self.out(torch.stack(outputs, 3).transpose(2, 3).flatten(-2))
