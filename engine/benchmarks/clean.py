"""Networks as a PyTorch user writes them, one at a time: the baseline of the benchmarks.

`mlm` lacks the rotation of queries and keys that Rankfall's network has, which makes the baseline faster.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

HIDDEN, SHARE, SPECIAL = (
    4,
    0.15,
    5,
)  # of masked text: the symbol that hides a word, the share of hidden words, the first word
LAYER_NORM, RMS_NORM = partial(nn.LayerNorm, eps=1e-12), partial(nn.RMSNorm, eps=1e-12)


class Attention(nn.Module):
    """Softmax attention with several heads."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.drop = nn.Dropout(dropout)

    def normalise(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1)

    def mix(self, x: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Mix the values (B, H, T, d). `x` (B, T, D) is the input of the layer."""
        weights = self.normalise(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5)  # (B, H, T, T)
        return self.drop(weights) @ v

    def forward(self, x: Tensor) -> Tensor:
        split = (x.shape[0], x.shape[1], self.heads, x.shape[2] // self.heads)
        q, k, v = (m(x).view(split).transpose(1, 2) for m in (self.query, self.key, self.value))  # (B, H, T, d)
        return self.output(self.mix(x, q, k, v).transpose(1, 2).flatten(2))  # (B, T, D)


class L2(Attention):
    """Attention whose rows of weights have L2 norm 1."""

    def normalise(self, scores: Tensor) -> Tensor:
        return functional.normalize((scores - scores.amax(-1, keepdim=True)).exp(), dim=-1)


class Linear(Attention):
    """Linear attention (Katharopoulos et al. 2020)."""

    def mix(self, x: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k = functional.elu(q) + 1, functional.elu(k) + 1
        return (q @ (k.transpose(-1, -2) @ v)) / (q @ k.sum(-2).unsqueeze(-1))


class Gate(Attention):
    """Softmax attention whose output is multiplied by a sigmoid of the input."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__(width, heads, dropout)
        self.gate = nn.Linear(width, width)

    def mix(self, x: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        gate = torch.sigmoid(self.gate(x)).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, H, T, d)
        return gate * super().mix(x, q, k, v)


class Delta(Attention):
    """The delta rule, which corrects a state token by token."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__(width, heads, dropout)
        self.rate = nn.Linear(width, heads)

    def mix(self, x: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, rate = functional.normalize(k, dim=-1), torch.sigmoid(self.rate(x)).transpose(1, 2)  # (B, H, T)
        state, outputs = x.new_zeros(*k.shape[:2], k.shape[-1], k.shape[-1]), []
        for t in range(x.shape[1]):
            key = k[:, :, t].unsqueeze(-1)  # (B, H, d, 1)
            error = v[:, :, t].unsqueeze(-1) - state @ key
            state = state + rate[:, :, t, None, None] * error * key.transpose(-1, -2)  # (B, H, d, d)
            outputs.append((state @ q[:, :, t].unsqueeze(-1)).squeeze(-1))
        return torch.stack(outputs, 2)  # (B, H, T, d)


class Gau(nn.Module):
    """The gated attention unit (Hua et al. 2022) with one head and softmax."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.gain, self.bias = nn.Parameter(torch.ones(2, 24)), nn.Parameter(torch.zeros(2, 24))
        self.gate, self.value, self.shared = (nn.Linear(width, size, bias=False) for size in (96, 96, 24))
        self.output, self.drop = nn.Linear(96, width, bias=False), nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        shared = functional.silu(self.shared(x))  # (B, T, 24)
        q, k = (shared * gain + bias for gain, bias in zip(self.gain, self.bias))
        weights = self.drop((q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).softmax(-1))  # (B, T, T)
        return self.output(functional.silu(self.gate(x)) * (weights @ functional.silu(self.value(x))))


@dataclass(frozen=True)
class Shape:
    """Sizes and parts of a network, and of its batches."""

    depth: int = 6
    width: int = 48
    heads: int = 2
    length: int = 8
    batch: int = 30
    inputs: int = 10  # symbols, or coordinates
    classes: int = 10
    tokens: bool = True  # else points
    positions: bool = True  # a learned vector for each
    mlp: bool = False
    masked: bool = False  # hide some tokens and predict these
    attention: Callable[[int, int, float], nn.Module] = Attention  # of width, heads and dropout
    norm: Callable[[int], nn.Module] = LAYER_NORM


TRANSFORMER = Shape(mlp=True)
KINDS = {
    "SAN+skip": Shape(),
    "transformer": TRANSFORMER,
    "l2 + rms": replace(TRANSFORMER, attention=L2, norm=RMS_NORM),
    "gau": Shape(attention=Gau, norm=RMS_NORM),
    "linear attention": replace(TRANSFORMER, attention=Linear),
    "gate": replace(TRANSFORMER, attention=Gate),
    "delta rule": replace(TRANSFORMER, attention=Delta),
    "24 layers": replace(TRANSFORMER, depth=24),
}
SHAPES = {
    **KINDS,
    "hull": Shape(length=10, batch=20, inputs=2, classes=2, tokens=False, positions=False),
    "mlm": Shape(1, 32, 2, 32, 20, 500, 500, positions=False, mlp=True, masked=True),
}


class Block(nn.Module):
    """Attention and possibly an MLP, each with a skip connection and a norm after it."""

    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        width = shape.width
        self.attention = shape.attention(width, shape.heads, dropout)
        self.drop, self.norm = nn.Dropout(dropout), shape.norm(width)
        self.mlp = None
        if shape.mlp:
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout)
            )
            self.norm2 = shape.norm(width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(x + self.drop(self.attention(x)))
        return x if self.mlp is None else self.norm2(x + self.mlp(x))


class Network(nn.Module):
    """Embedding, blocks and a linear head."""

    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        width = shape.width
        self.embedding: nn.Module = (
            nn.Embedding(shape.inputs, width)
            if shape.tokens
            else nn.Sequential(nn.Linear(shape.inputs, width), nn.GELU(), nn.Linear(width, width))
        )
        self.positions = nn.Parameter(torch.randn(shape.length, width)) if shape.positions else None
        self.norm, self.drop = shape.norm(width), nn.Dropout(dropout)
        self.blocks = nn.Sequential(*(Block(shape, dropout) for _ in range(shape.depth)))
        self.head = nn.Linear(width, shape.classes)

    def states(self, inputs: Tensor) -> Tensor:
        x = self.embedding(inputs)  # (B, T, D)
        return self.blocks(self.drop(self.norm(x if self.positions is None else x + self.positions)))  # type: ignore[no-any-return]

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.states(inputs))  # type: ignore[no-any-return]


def masked_loss(net: Network, inputs: Tensor) -> Tensor:
    """Hide some words, and return the loss of predicting these alone."""
    hidden = torch.rand(inputs.shape) < SHARE
    scores = net.head(net.states(inputs.masked_fill(hidden, HIDDEN))[hidden])
    return functional.cross_entropy(scores, inputs[hidden])


def make_step(name: str, dropout: float, compiled: bool = False) -> Callable[[], None]:
    """Return a step of one network on one batch. If compiled, `torch.compile` starts without its caches."""
    shape = SHAPES[name]
    module = Network(shape, dropout).train()
    net: Any = compile_anew(module) if compiled else module
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
    size = (shape.batch, shape.length)
    inputs = torch.rand(*size, shape.inputs)
    if shape.tokens:
        inputs = torch.randint(SPECIAL if shape.masked else 0, shape.inputs, size)
    targets = torch.randint(shape.classes, size)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        if shape.masked:
            masked_loss(net, inputs).backward()  # type: ignore[no-untyped-call]
        else:
            functional.cross_entropy(net(inputs).flatten(0, 1), targets.flatten()).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


def compile_anew(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function compiled by PyTorch as it is the first time."""
    from torch import _dynamo
    from torch._inductor import config

    config.force_disable_caches = True
    _dynamo.reset()
    return torch.compile(function)
