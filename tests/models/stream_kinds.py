"""Small modules whose residual stream runs in another way than x + f(x), or not everywhere: what a check has to measure whole, or name."""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WIDTH, TOKENS, SAMPLES, DEPTH = 8, 7, 2, 6


def states(*shape: int) -> Tensor:
    return torch.randn(*(shape or (SAMPLES, TOKENS, WIDTH)), generator=torch.Generator().manual_seed(3))


def tokens() -> Tensor:
    return torch.randint(0, 20, (SAMPLES, TOKENS), generator=torch.Generator().manual_seed(4))


def through(blocks: Iterable[nn.Module], x: Tensor, *given: Tensor) -> Tensor:
    """Return a state behind blocks, each of which also reads what is given."""
    for block in blocks:
        x = block(x, *given)
    return x


class Attention(nn.Module):
    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True))


class MLP(nn.Module):
    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 12), nn.Linear(12, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(self.norm(x))))


class Block(nn.Module):
    def __init__(self, attention: nn.Module | None = None) -> None:
        super().__init__()
        self.attention, self.mlp = attention or Attention(), MLP()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(x)
        return x + self.mlp(x)


class Stack(nn.Module):
    def __init__(self, block: type[nn.Module] = Block, depth: int = DEPTH) -> None:
        super().__init__()
        self.embed, self.blocks = nn.Linear(WIDTH, WIDTH), nn.ModuleList(block() for _ in range(depth))
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(through(self.blocks, self.embed(x)))


class FromFirst(Stack):
    """x = .9 x + .1 x0 before each block."""

    def forward(self, x: Tensor) -> Tensor:
        x = first = self.embed(x)
        for block in self.blocks:
            x = block(0.9 * x + 0.1 * first)
        return self.head(x)


class AddedSkips(Stack):
    """A U with long skips that are added, by learned weights."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.full((DEPTH // 2,), 0.7))

    def forward(self, x: Tensor) -> Tensor:
        x, kept = self.embed(x), []
        for n, block in enumerate(self.blocks):
            if n >= DEPTH // 2:
                x = x + self.weights[n - DEPTH // 2] * kept.pop()
            x = block(x)
            if n < DEPTH // 2:
                kept.append(x)
        return self.head(x)


class Bare(Block):
    def forward(self, x: Tensor) -> Tensor:
        return self.mlp(self.attention(x))


class BareAttention(Block):
    def forward(self, x: Tensor) -> Tensor:
        x = self.attention(x)
        return x + self.mlp(x)


class BareMLP(Block):
    def forward(self, x: Tensor) -> Tensor:
        return self.mlp(x + self.attention(x))


class Forgets(Stack):
    """One block, or some, or parts of one, forgets its skip."""

    def __init__(self, *where: int, block: type[nn.Module] = Bare, depth: int = 8) -> None:
        super().__init__(depth=depth)
        for place in where:
            self.blocks[place] = block()


class Looped(Stack):
    """Two blocks, called three times."""

    def __init__(self) -> None:
        super().__init__(depth=2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for _ in range(DEPTH // 2):
            x = through(self.blocks, x)
        return self.head(x)


class Inline(nn.Module):
    """No modules for layers; the same parts again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.attention, self.mlp = nn.Linear(WIDTH, WIDTH), Attention(), MLP()

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for _ in range(DEPTH):
            x = x + self.attention(x)
            x = x + self.mlp(x)
        return x


class ChannelsBlock(Block):
    """(B, D, T)"""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(x.transpose(1, 2)).transpose(1, 2)
        return x + self.mlp(x.transpose(1, 2)).transpose(1, 2)


class Channels(Stack):
    def __init__(self) -> None:
        super().__init__(ChannelsBlock)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x).transpose(1, 2)
        x = through(self.blocks, x)
        return self.head(x.transpose(1, 2))


class TokensFirstBlock(Block):
    """(T, B, D)"""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(x.transpose(0, 1)).transpose(0, 1)
        return x + self.mlp(x)


class DeepNormBlock(Block):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm1(1.9 * x + self.attention(x))
        return self.norm2(1.9 * x + self.mlp(x))


class TupleBlock(Block):
    def forward(self, x: Tensor) -> tuple[Tensor, None, Tensor]:
        return super().forward(x), None, x.mean(1)


class Tuples(Stack):
    def __init__(self) -> None:
        super().__init__(TupleBlock)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)[0]
        return self.head(x)


class Highway(Block):
    """x g + f(x) (1 - g)"""

    def __init__(self) -> None:
        super().__init__()
        self.gates = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for gate, part in zip(self.gates, (self.attention, self.mlp), strict=True):
            g = gate(x).sigmoid()
            x = g * x + (1 - g) * part(x)
        return x


class Routed(nn.Module):
    """Expert choice: each of two experts takes the third of all tokens of the batch that it scores highest."""

    def __init__(self) -> None:
        super().__init__()
        self.score, self.experts = nn.Linear(WIDTH, 2), nn.ModuleList(MLP() for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(0, -2)
        out = torch.zeros_like(flat)
        for scores, expert in zip(self.score(flat).softmax(-1).unbind(-1), self.experts, strict=True):
            weight, chosen = scores.topk(len(flat) // 3)
            out = out.index_add(0, chosen, weight[:, None] * expert(flat[chosen]))
        return out.view_as(x)


class RoutedBlock(Block):
    def __init__(self) -> None:
        super().__init__()
        self.mlp = Routed()


class BatchNormed(Block):
    """A norm over samples and tokens, before each branch."""

    def norm(self, x: Tensor) -> Tensor:
        return (x - x.mean((0, 1))) / (x.var((0, 1)) + 1e-3).sqrt()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm(x))
        return x + self.mlp(self.norm(x))


def seen_by_hooks(model: nn.Module, inputs: Tensor) -> list[Tensor]:
    """Return the states that enter the blocks, and the one that leaves the last, (B, T, D), in float64."""
    entered, left = [], []
    model = model.double().eval()
    for block in dict.fromkeys(model.blocks):
        block.register_forward_pre_hook(lambda module, given: entered.append(given[0]))
        block.register_forward_hook(
            lambda module, given, output: left.append(output[0] if isinstance(output, tuple) else output)
        )
    with torch.no_grad():
        model(inputs.double())
    return [*entered, left[-1]]
