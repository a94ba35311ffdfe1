"""Real architectures with one bug each, for tests of the named checks: a decoder, an encoder with padding and a regression network."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

WIDTH, HEADS, DEPTH, VOCABULARY, TOKENS, SAMPLES = 32, 4, 4, 50, 12, 3


def tokens(samples: int = SAMPLES, length: int = TOKENS) -> Tensor:
    return torch.randint(1, VOCABULARY, (samples, length), generator=torch.Generator().manual_seed(1))


Weigh = Callable[[Tensor, Tensor], Tensor]


def masked(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.masked_fill(~mask, -math.inf).softmax(-1)


class Attention(nn.Module):
    """Self-attention of a decoder, written out. `allowed` makes its mask from the number of tokens, `weigh` its weights of scores."""

    def __init__(self, allowed: Callable[[int], Tensor], weigh: Weigh = masked) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.allowed, self.weigh = allowed, weigh

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (one.unflatten(-1, (HEADS, -1)).transpose(1, 2) for one in self.qkv(self.norm(x)).chunk(3, -1))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        weights = self.weigh(scores, self.allowed(x.shape[1]))
        return self.out((weights @ v).transpose(1, 2).flatten(-2))


class MLP(nn.Module):
    def __init__(self, function: nn.Module | None = None) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 64), nn.Linear(64, WIDTH)
        self.function = function or nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.function(self.up(self.norm(x))))


class Block(nn.Module):
    def __init__(
        self, allowed: Callable[[int], Tensor], function: nn.Module | None = None, weigh: Weigh = masked
    ) -> None:
        super().__init__()
        self.attention, self.mlp = Attention(allowed, weigh), MLP(function)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(x)
        return x + self.mlp(x)


def causal(count: int) -> Tensor:
    return torch.ones(count, count, dtype=torch.bool).tril()


class Decoder(nn.Module):
    """A GPT: learned positions, pre-norm blocks, a final norm and logits. `between` and `end` change states and logits."""

    def __init__(
        self,
        allowed: Callable[[int], Tensor] = causal,
        function: nn.Module | None = None,
        weigh: Weigh = masked,
        between: Callable[[Tensor], Tensor] = lambda x: x,
        end: Callable[[Tensor], Tensor] = lambda x: x,
    ) -> None:
        super().__init__()
        self.between, self.end = between, end
        self.embed, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(64, WIDTH)
        self.blocks = nn.ModuleList(Block(allowed, function, weigh) for _ in range(DEPTH))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, numbers: Tensor) -> Tensor:
        x = self.embed(numbers) + self.places(torch.arange(numbers.shape[1]))
        for block in self.blocks:
            x = block(self.between(x))
        return self.end(self.head(self.norm(x)))


class Encoder(nn.Module):
    """A BERT of PyTorch's layers with a padding mask. `use`: what becomes of the mask, `pool`: of the last states."""

    def __init__(
        self,
        use: Callable[[Tensor], Tensor | None] = lambda mask: mask,
        padding: int | None = None,
        pool: Callable[[Tensor], Tensor] = lambda x: x,
    ) -> None:
        super().__init__()
        self.pool = pool
        self.embed, self.use = nn.Embedding(VOCABULARY, WIDTH, padding_idx=padding), use
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 64, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, DEPTH, enable_nested_tensor=False)

    def forward(self, numbers: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        mask = numbers == 0 if padding_mask is None else padding_mask
        return self.pool(self.layers(self.embed(numbers), src_key_padding_mask=self.use(mask)))


def scaled(change: Callable[[Any], None], **options: Any) -> nn.Module:
    """Return a decoder whose weights are changed."""
    model = Decoder(**options)
    with torch.no_grad():
        change(model)
    return model


class OverBatch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return (x - x.mean((0, 1))) / x.std((0, 1))


class Root(nn.Module):
    """The root of numbers of which some are negative."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sqrt()


class Cancels(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return (x + 1e8) - 1e8


class Detached(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x).detach()


class Bare(Block):
    """A block that forgets its skips."""

    def forward(self, x: Tensor) -> Tensor:
        return self.mlp(self.attention(x))


class Twice(Block):
    """A block that adds its skip twice."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + (x + self.attention(x))
        return x + self.mlp(x)


class Rectified(Block):
    """A block whose rectifier works in place, on the stream."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(x)
        return x + self.mlp(torch.relu_(x))


class ByPlace(nn.Module):
    """An embedding with positions along the batch, as of a tutorial's (T, B, D) code on (B, T, D)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(64, WIDTH)

    def forward(self, numbers: Tensor) -> Tensor:
        return self.embed(numbers) + self.places(torch.arange(len(numbers)))[:, None]


class Centred(nn.Module):
    """An embedding with a convolution that sees the next token."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.smooth = nn.Embedding(VOCABULARY, WIDTH), nn.Conv1d(WIDTH, WIDTH, 3, padding=1)

    def forward(self, numbers: Tensor) -> Tensor:
        return self.smooth(self.embed(numbers).mT).mT
