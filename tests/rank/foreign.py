"""Normalisers and attentions as a user writes them in a file of his own: none is known to the package."""

import torch
from torch import Tensor, nn

from rankfall.nets.primitives import Dropout, Linear, Sizes, constant, no_dropout
from rankfall.rank.centred.scaled import expm1
from rankfall.rank.centred.scores import Scores
from rankfall.rank.centred.weights import Weights, columns, differences, softmax_rows


def soft(logits: Tensor, *, temperature: float = 1.0) -> Tensor:
    return (logits / temperature).softmax(-1)


class Differential(nn.Module):
    """Each head's softmax less a share of its neighbour's, another share for each head."""

    def __init__(self, sizes: Sizes, *, share: float = 0.5) -> None:
        super().__init__()
        self.share = constant(sizes, 1, sizes.heads, 1, 1, value=share)

    def forward(self, logits: Tensor) -> Tensor:
        weights = logits.softmax(-1)
        return weights - self.share * weights.unflatten(2, (-1, 2)).flip(3).flatten(2, 3)


def single(logits: Tensor) -> Tensor:
    """In less than the precision of its input."""
    return logits.float().softmax(-1).to(logits.dtype)


def largest(logits: Tensor) -> Tensor:
    """A softmax over the two largest scores: where scores are equal, which two is anybody's guess."""
    lowest = logits.topk(2, -1).values[..., -1:]
    return logits.masked_fill(logits < lowest, -torch.inf).softmax(-1)


def known(logits: Tensor, *, temperature: float = 1.0) -> Tensor:
    """With its centred form beside it; detached, so that nothing could be derived."""
    return (logits / temperature).detach().softmax(-1)


def known_centred(scores: Scores, *, temperature: float = 1.0) -> Weights:
    g = differences(scores, shift_cancels=True)
    common = (columns(scores) / temperature).softmax(-1)
    return Weights(softmax_rows(common, expm1(g.map(g.unit / temperature))), None)


def mistaken(logits: Tensor) -> Tensor:
    return logits.softmax(-1)


def mistaken_centred(scores: Scores) -> Weights:
    return known_centred(scores, temperature=1.5)


class Rounded(nn.Module):
    """Attention in single precision inside, with nothing of the package's attention."""

    def __init__(self, sizes: Sizes, position: object, normaliser: object, mask: object, site: str) -> None:
        super().__init__()
        self.query, self.key, self.value = (
            Linear(sizes, sizes.width, sizes.width, role) for role in ("query", "key", "value")
        )

    def forward(self, x: Tensor, drop: Dropout = no_dropout) -> Tensor:
        scores = self.query(x) @ self.key(x).mT * x.shape[-1] ** -0.5  # (K, B, T, T)
        return scores.float().softmax(-1).to(x) @ self.value(x)
