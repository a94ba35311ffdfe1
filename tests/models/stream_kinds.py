"""Small modules whose residual stream runs in another way than x + f(x), or not everywhere: what a check has to measure whole, or name."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WIDTH, TOKENS, SAMPLES, DEPTH = 8, 7, 2, 6


def states(*shape: int) -> Tensor:
    return torch.randn(*(shape or (SAMPLES, TOKENS, WIDTH)), generator=torch.Generator().manual_seed(3))


def tokens() -> Tensor:
    return torch.randint(0, 20, (SAMPLES, TOKENS), generator=torch.Generator().manual_seed(4))


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
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class FromFirst(Stack):
    """x = .9 x + .1 x0 before each block."""

    def forward(self, x: Tensor) -> Tensor:
        x = first = self.embed(x)
        for block in self.blocks:
            x = block(0.9 * x + 0.1 * first)
        return self.head(x)


class ScaledBlock(Block):
    """The same inside the block, by scalars that are learned, as in modded nanoGPT."""

    def __init__(self) -> None:
        super().__init__()
        self.scales = nn.Parameter(torch.tensor([0.8, 0.2]))

    def forward(self, x: Tensor, first: Tensor) -> Tensor:
        return super().forward(self.scales[0] * x + self.scales[1] * first)


class Learned(Stack):
    def __init__(self) -> None:
        super().__init__(ScaledBlock)

    def forward(self, x: Tensor) -> Tensor:
        x = first = F.rms_norm(self.embed(x), (WIDTH,))
        for block in self.blocks:
            x = block(x, first)
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


class JoinedSkips(Stack):
    """A U with long skips that a linear map joins."""

    def __init__(self) -> None:
        super().__init__()
        self.joins = nn.ModuleList(nn.Linear(2 * WIDTH, WIDTH) for _ in range(DEPTH // 2))

    def forward(self, x: Tensor) -> Tensor:
        x, kept = self.embed(x), []
        for n, block in enumerate(self.blocks):
            if n >= DEPTH // 2:
                x = self.joins[n - DEPTH // 2](torch.cat([x, kept.pop()], -1))
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


class ValueResidual(Block):
    """Values are mixed with those of the first block."""

    def forward(self, x: Tensor, first: Tensor | None) -> tuple[Tensor, Tensor]:
        q, k, v = self.attention.qkv(self.attention.norm(x)).chunk(3, -1)
        v = v if first is None else 0.5 * v + 0.5 * first
        x = x + self.attention.out(F.scaled_dot_product_attention(q, k, v, is_causal=True))
        return x + self.mlp(x), v if first is None else first


class Values(Stack):
    def __init__(self) -> None:
        super().__init__(ValueResidual)

    def forward(self, x: Tensor) -> Tensor:
        x, first = self.embed(x), None
        for block in self.blocks:
            x, first = block(x, first)
        return self.head(x)


class ValuesOfBefore(Values):
    """Values add up from block to block."""

    def forward(self, x: Tensor) -> Tensor:
        x, value = self.embed(x), None
        for block in self.blocks:
            q, k, v = block.attention.qkv(block.attention.norm(x)).chunk(3, -1)
            value = v if value is None else value + v
            x = x + block.attention.out(F.scaled_dot_product_attention(q, k, value, is_causal=True))
            x = x + block.mlp(x)
        return self.head(x)


class Scores(Attention):
    """RealFormer: the scores of the block before are added to these."""

    def forward(self, x: Tensor, before: Tensor | None = None) -> tuple[Tensor, Tensor]:
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        scores = q @ k.transpose(-2, -1) / WIDTH**0.5
        scores = scores if before is None else scores + before
        return self.out(scores.softmax(-1) @ v), scores


class ScoresBlock(Block):
    def __init__(self) -> None:
        super().__init__(Scores())

    def forward(self, x: Tensor, before: Tensor | None) -> tuple[Tensor, Tensor]:
        y, scores = self.attention(x, before)
        x = x + y
        return x + self.mlp(x), scores


class ResidualScores(Values):
    def __init__(self) -> None:
        Stack.__init__(self, ScoresBlock)


class ReversibleBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.mlp = Attention(), MLP()

    def forward(self, one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
        one = one + self.attention(other)
        return one, other + self.mlp(one)


class Reversible(Stack):
    def __init__(self, copies: bool = False) -> None:
        super().__init__(ReversibleBlock)
        self.embed, self.copies = nn.Linear(WIDTH, WIDTH if copies else 2 * WIDTH), copies

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        one, other = (x, x) if self.copies else x.chunk(2, -1)
        for block in self.blocks:
            one, other = block(one, other)
        return self.head(one + other)


class Looped(Stack):
    """Two blocks, called three times."""

    def __init__(self) -> None:
        super().__init__(depth=2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for _ in range(DEPTH // 2):
            for block in self.blocks:
                x = block(x)
        return self.head(x)


class LoopedFromFirst(Looped):
    """The input is given to each round again, as in recurrent-depth models."""

    def forward(self, x: Tensor) -> Tensor:
        x = first = self.embed(x)
        for _ in range(DEPTH // 2):
            x = x + first
            for block in self.blocks:
                x = block(x)
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
        for block in self.blocks:
            x = block(x)
        return self.head(x.transpose(1, 2))


class GivenChannels(Channels):
    """Given states (B, D, T)."""

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


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


class Pairs(nn.Module):
    """A list of pairs of parts."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.ModuleList([Attention(), MLP()]) for _ in range(DEPTH))

    def forward(self, x: Tensor) -> Tensor:
        for attention, mlp in self.layers:
            x = x + attention(x)
            x = x + mlp(x)
        return x


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


class Convex(Block):
    def __init__(self) -> None:
        super().__init__()
        self.share = nn.Parameter(torch.tensor(0.3))

    def forward(self, x: Tensor) -> Tensor:
        share = self.share.sigmoid()
        x = (1 - share) * x + share * self.attention(x)
        return torch.lerp(x, self.mlp(x), share)


class ConvexSums(Convex):
    def forward(self, x: Tensor) -> Tensor:
        share = self.share.sigmoid()
        x = (1 - share) * x + share * self.attention(x)
        return (1 - share) * x + share * self.mlp(x)


class HyperBlock(Block):
    """Four streams (B, T, n, D): a block reads a mixture of them, and writes to all."""

    def __init__(self) -> None:
        super().__init__()
        self.read, self.write = nn.Parameter(torch.rand(4)), nn.Parameter(torch.rand(4))
        self.among = nn.Parameter(torch.eye(4) + 0.1 * torch.rand(4, 4))

    def forward(self, x: Tensor) -> Tensor:
        for part in (self.attention, self.mlp):
            y = part(torch.einsum("n,btnd->btd", self.read, x))
            x = torch.einsum("nm,btmd->btnd", self.among, x) + self.write[:, None] * y[..., None, :]
        return x


class Hyper(Stack):
    def __init__(self, block: type[nn.Module] = HyperBlock, axis: int = 2) -> None:
        super().__init__(block)
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x).unsqueeze(self.axis)
        x = x.expand(*(4 if axis == self.axis else -1 for axis in range(4)))
        for block in self.blocks:
            x = block(x)
        return self.head(x.sum(self.axis))


class AltBlock(Block):
    """Four streams (n, B, T, D): they predict each other, one is worked on, all are corrected, as in Gemma 3n."""

    def __init__(self) -> None:
        super().__init__()
        self.among = nn.Parameter(0.1 * torch.rand(4, 4))

    def forward(self, x: Tensor) -> Tensor:
        y = x + torch.einsum("nm,mbtd->nbtd", self.among, x)
        worked = super().forward(y[0])
        return y + (worked - y[0])[None] * torch.ones(4, 1, 1, 1, dtype=x.dtype)


class Folded(Stack):
    """Four streams that are folded into the samples, (4 B, T, D)."""

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x).repeat_interleave(4, 0)
        for n, block in enumerate(self.blocks):
            x = block(x).unflatten(0, (-1, 4))
            x = (x + 0.1 * x.roll(1, 1) * (n + 1)).flatten(0, 1)
        return self.head(x.unflatten(0, (-1, 4)).sum(1))


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


class PostBatchNormed(BatchNormed):
    """The same after each addition."""

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(x + self.attention(x))
        return self.norm(x + self.mlp(x))


class Flat(Stack):
    """Routed among all tokens of the batch, on states (B T, D)."""

    def __init__(self) -> None:
        super().__init__(RoutedBlock)

    def forward(self, x: Tensor) -> Tensor:
        shape = x.shape
        x = self.embed(x).flatten(0, 1)
        for block in self.blocks:
            x = x + block.attention(x.unflatten(0, shape[:2])).flatten(0, 1)
            x = x + block.mlp(x)
        return self.head(x)
