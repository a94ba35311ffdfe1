"""Components as a stranger writes them."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from rankfall.nets.attentions._heads import prepare
from rankfall.nets.dropout import Dropout, no_dropout
from rankfall.nets.primitives import Linear, Sizes
from rankfall.random_streams import stream
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


def noisy(logits: Tensor) -> Tensor:
    """A normaliser that draws."""
    return (logits + torch.rand_like(logits)).softmax(-1)


def by_value(logits: Tensor) -> Tensor:
    """A normaliser that decides by a number of the data."""
    return logits.softmax(-1) if float(logits.max()) > 0 else logits.sigmoid()


def drawn(module: nn.Module, batch: Samples, drop: Dropout = no_dropout) -> Graded:
    """An objective that draws in Python, by the place of the batch."""
    graded = classes(module, batch, drop)
    return Graded(graded.loss * stream(0, "drawn", *batch.place).random(), graded.asked)


def weighted(module: nn.Module, batch: Samples, drop: Dropout = no_dropout, *, least: float = 0.5) -> Graded:
    """Classes, of scores times numbers that are drawn for each step and member: one for each token, and one for all."""
    batch = draw_weighted(batch, least=least)
    assert batch.drawn is not None
    of_tokens, of_member = batch.drawn

    def scores(*given: Any) -> Tensor:
        scores: Tensor = module(*given)
        return scores * of_tokens.to(scores.dtype).unsqueeze(-1) * of_member.to(scores.dtype).view(-1, 1, 1, 1)

    return classes(scores, batch, drop)  # type: ignore[arg-type]


def draw_weighted(batch: Samples, *, least: float = 0.5) -> Samples:
    if batch.drawn is not None:
        return batch
    streams = [stream(seed, "weights", *batch.place) for seed in batch.seeds]
    of_tokens = np.array([rng.uniform(least, 1, tuple(batch.inputs.shape[1:3])) for rng in streams])
    of_member = np.array([rng.uniform(1, 2) for rng in streams])
    return replace(batch, drawn=tuple(torch.tensor(x).to(torch.get_default_dtype()) for x in (of_tokens, of_member)))


class Lion:
    """The sign of a mean of gradients (Chen et al. 2023)."""

    slots = 1

    def step(self, weights, grads, slots, lr, decay, t, scratch) -> None:  # type: ignore[no-untyped-def]
        (mean,) = slots
        if decay is not None:
            weights.mul_(1 - lr * decay)
        weights.sub_(lr * torch.lerp(mean, grads, 0.1).sign())
        mean.lerp_(grads, 0.01)


class Trusting:
    """A step as long as the weights are, of three slots, whose form and numbers change with the step."""

    slots = 3

    def step(self, weights, grads, slots, lr, decay, t, scratch) -> None:  # type: ignore[no-untyped-def]
        first, second, slow = slots
        first.mul_(0.9).add_(grads, alpha=0.1)
        second.copy_(torch.maximum(second * (1 - t**-0.8), grads.square()))
        step = first.div(1 - 0.9**t).div_(second.sqrt().add_(1e-6))
        norms = weights.square().sum(1, keepdim=True).sqrt(), step.square().sum(1, keepdim=True).sqrt()
        weights.addcmul_(step, lr * norms[0] / norms[1].clamp_min(1e-6), value=-1)
        if t % 3 == 0:
            slow.add_(weights.sub(slow), alpha=0.5)
            weights.copy_(slow)


class Halved:
    """Changes a part of the weights: no operation on whole rows."""

    slots = 0

    def step(self, weights, grads, slots, lr, decay, t, scratch) -> None:  # type: ignore[no-untyped-def]
        weights[:, ::2].sub_(lr * grads[:, ::2])


class Deciding:
    """Decides by a number of the data."""

    slots = 0

    def step(self, weights, grads, slots, lr, decay, t, scratch) -> None:  # type: ignore[no-untyped-def]
        weights.sub_(lr * grads * (2.0 if float(grads.max()) > 0 else 1.0))


class Counting:
    """Keeps a number between steps, which no optimiser may."""

    slots = 0

    def __init__(self) -> None:
        self.count = 0

    def step(self, weights, grads, slots, lr, decay, t, scratch) -> None:  # type: ignore[no-untyped-def]
        self.count += 1
        weights.sub_(lr * grads * self.count)
