"""Components of a user's own, as different as they come; each must pass its trial."""

import functools
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from rankfall.nets.masks._mask import Mask
from rankfall.nets.positions._base import Position
from rankfall.nets.primitives import Dropout, Initial, Linear, Sizes, constant, no_dropout, parameter

ACCEPTS = "tokens"
COUNT = 2


def sparsemax(logits: Tensor) -> Tensor:
    """Return the point of the simplex that is nearest to the scores; most weights are exactly zero."""
    scores = logits - logits.amax(-1, keepdim=True)
    ordered = scores.sort(-1, descending=True).values
    ordered = ordered.masked_fill(ordered.isneginf(), -1e9)
    counts = torch.arange(1, scores.shape[-1] + 1, dtype=scores.dtype)
    support = (1 + counts * ordered > ordered.cumsum(-1)).sum(-1, keepdim=True)
    threshold = (ordered.cumsum(-1).gather(-1, support - 1) - 1) / support
    return (scores - threshold).relu()


class Tempered(nn.Module):
    """A temperature for each head, learned. It must not meet -inf, of which its gradient would be NaN."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.log_temperature = constant(sizes, 1, sizes.heads, 1, 1, value=0.0)

    def forward(self, logits: Tensor) -> Tensor:
        masked = logits.isneginf()
        sharpened = logits.masked_fill(masked, 0.0) * self.log_temperature.exp()
        return sharpened.masked_fill(masked, -torch.inf).softmax(-1)


class Walk(Position):
    """A table added to states, a turn of queries and keys, and a slope; what follows from the length is kept for the next call."""

    def __init__(self, sizes: Sizes, *, dimmed: bool = True) -> None:
        super().__init__()
        self.table = parameter(sizes, 1, sizes.length, sizes.width, initial=Initial("position", "weight", sizes.width))
        self.slope = constant(sizes, 1, sizes.heads, 1, 1, value=-1.0)
        self.register_buffer("dim", torch.tensor(0.5 if dimmed else 1.0))
        self.length = 0
        self.distance: Tensor | None = None

    def embed(self, x: Tensor) -> Tensor:
        return x + self.dim * self.table[:, :, : x.shape[2]]

    def bias(self, logits: Tensor) -> Tensor:
        if self.length != logits.shape[-1]:
            self.length = logits.shape[-1]
            places = torch.arange(self.length)
            self.distance = (places.unsqueeze(1) - places).abs()
        return logits + self.slope * self.distance


def lookup_free(sizes: Sizes) -> Callable[[Tensor], Tensor]:
    return functools.partial(torch.mul, 0.5)


class ScaledUnit(nn.Module):
    """A norm with a gain; features less the mean over tokens."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.gain = constant(sizes, 1, 1, 1, value=1.0)

    def plain(self, x: Tensor) -> Tensor:
        x = x - x.mean(2, keepdim=True)
        return x / (x.norm(dim=-1, keepdim=True) + 1e-6)

    def forward(self, x: Tensor) -> Tensor:
        return self.gain * self.plain(x)


class Ends(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        start = Initial("embedding", "weight", sizes.width)
        self.left, self.right = (parameter(sizes, 1, 1, sizes.width, initial=start) for _ in range(2))

    def add(self, x: Tensor) -> Tensor:
        left, right = (token.expand(-1, x.shape[1], -1, -1) for token in (self.left, self.right))
        return torch.cat([left, x, right], 2)

    def strip(self, x: Tensor) -> Tensor:
        return x[:, :, 1:-1]


class Averaging(nn.Module):
    """Mixes tokens by the mean of what the mask lets them see: no scores, heads or normaliser."""

    def __init__(self, sizes: Sizes, position: Position, normaliser: object, mask: Mask, site: str) -> None:
        super().__init__()
        self.map, self.mask = Linear(sizes, sizes.width, sizes.width, "value"), mask

    def forward(self, x: Tensor, drop: Dropout = no_dropout) -> Tensor:
        seen = self.mask(x.shape[2], x.device)
        weights = x.new_ones(x.shape[2], x.shape[2]) if seen is None else seen.to(x.dtype)
        return (weights / weights.sum(-1, keepdim=True)) @ self.map(x)


def orthogonal(
    rng: np.random.Generator, role: str, kind: str, shape: tuple[int, ...], fan_in: int, *, gain: float = 1.0
) -> np.ndarray:
    if kind == "bias":
        return np.zeros(shape)
    left, _, right = np.linalg.svd(rng.normal(size=(shape[-2], shape[-1])), full_matrices=False)
    return np.broadcast_to(gain * left @ right, shape)
