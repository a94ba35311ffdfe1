"""Normalisers and attentions as a user writes them in a file of his own: none is known to the package."""

import torch
from torch import Tensor, nn

from rankfall.nets.dropout import Dropout, no_dropout
from rankfall.nets.primitives import Linear, Sizes, constant
from rankfall.rank.centred.scaled import expm1
from rankfall.rank.centred.scores import Scores
from rankfall.rank.centred.weights import Weights, columns, differences, softmax_rows


def sparsemax(logits: Tensor) -> Tensor:
    """The nearest point of the simplex: linear in the scores, with kinks where an entry becomes zero."""
    ordered = logits.sort(-1, descending=True).values
    places = torch.arange(1, logits.shape[-1] + 1, dtype=logits.dtype, device=logits.device)
    finite = ordered.masked_fill(ordered.isneginf(), -1e30)
    sums = finite.cumsum(-1)
    held = (1 + places * finite > sums).sum(-1, keepdim=True)
    threshold = (sums.gather(-1, held - 1) - 1) / held
    return (logits - threshold).clamp_min(0.0)


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


class Maps(nn.Module):
    """Queries, keys, values and output of all heads, and nothing of the package's attention."""

    def __init__(
        self, sizes: Sizes, position: object, normaliser: object, mask: object, site: str, pairs: int = 1
    ) -> None:
        super().__init__()
        self.heads, self.head_width = sizes.heads, sizes.head_width
        inner = sizes.heads * sizes.head_width
        self.queries, self.keys = (
            nn.ModuleList(Linear(sizes, sizes.width, inner, role) for _ in range(pairs)) for role in ("query", "key")
        )
        self.value = Linear(sizes, sizes.width, inner, "value")
        self.output = Linear(sizes, inner, sizes.width, "output")

    def split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, self.head_width).transpose(2, 3)

    def scores(self, x: Tensor) -> list[Tensor]:
        """Of each pair of queries and keys (K, B, H, T, T)."""
        pairs = zip(self.queries, self.keys)
        return [self.split(q(x)) @ self.split(k(x)).mT * self.head_width**-0.5 for q, k in pairs]

    def weights(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor, drop: Dropout = no_dropout) -> Tensor:
        return self.output((self.weights(x) @ self.split(self.value(x))).transpose(2, 3).flatten(-2))


class TwoSoftmaxes(Maps):
    """Differential attention: a second softmax, of queries and keys of its own, is taken off. Rows sum to 1 - lambda."""

    def __init__(self, sizes: Sizes, *parts: object) -> None:
        super().__init__(sizes, *parts, pairs=2)  # type: ignore[arg-type]
        self.share = constant(sizes, 1, sizes.heads, 1, 1, value=0.5)

    def weights(self, x: Tensor) -> Tensor:
        first, second = self.scores(x)
        return first.softmax(-1) - self.share * second.softmax(-1)


class Rounded(Maps):
    """In single precision inside."""

    def weights(self, x: Tensor) -> Tensor:
        return self.scores(x)[0].float().softmax(-1).to(x)
