"""Small modules like those of public repositories: reversible networks, lists of pairs, Set Transformer, perceiver, FlexAttention, ..."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from stream_kinds import MLP, WIDTH, Attention, Block, Stack, through
from torch import Tensor, nn


class Halves(Stack):
    """Two halves of one state, cut and joined in every block."""

    class Layer(Block):
        def forward(self, x: Tensor) -> Tensor:
            left, right = x.chunk(2, -1)
            left = left + self.attention(right)
            return torch.cat([left, right + self.mlp(left)], -1)

    def __init__(self) -> None:
        super().__init__(self.Layer, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.cat([self.embed(x)] * 2, -1)
        return through(self.blocks, x)


class RevNet(nn.Module):
    """Halves of the channels of pictures."""

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            parts = [nn.Sequential(nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1)) for _ in range(2)]
            self.f, self.g = parts

        def forward(self, x: Tensor) -> Tensor:
            left, right = x.chunk(2, 1)
            left = left + self.f(right)
            return torch.cat([left, right + self.g(left)], 1)

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.blocks = nn.Conv2d(3, 8, 3, padding=1), nn.Sequential(*(self.Layer() for _ in range(3)))

    def forward(self, x: Tensor) -> Tensor:
        return self.blocks(self.stem(x))


class Speedrun(Stack):
    """The first state is mixed in at the start of each block, values are added, long skips too, and a block has no attention."""

    class Layer(Block):
        def __init__(self) -> None:
            super().__init__()
            self.shares, self.attends = nn.Parameter(torch.tensor([0.9, 0.1])), True

        def forward(self, x: Tensor, first: Tensor, values: Tensor) -> Tensor:
            x = self.shares[0] * x + self.shares[1] * first
            if self.attends:
                x = x + self.attention(x + 0.1 * values)
            return x + self.mlp(x)

    def __init__(self) -> None:
        super().__init__(self.Layer, 4)
        self.values, self.blocks[2].attends = nn.Linear(WIDTH, WIDTH), False

    def forward(self, x: Tensor) -> Tensor:
        values, kept = self.values(x), []
        x = first = F.rms_norm(self.embed(x), (WIDTH,))
        for number, block in enumerate(self.blocks):
            x = block(x if number < 2 else x + 0.5 * kept.pop(), first, values)
            kept += [x] if number < 2 else []
        return x


class Folded(Stack):
    """Two streams a token, in the axis of samples, which every block mixes."""

    class Layer(Block):
        def forward(self, x: Tensor) -> Tensor:
            shares = torch.tensor([[0.9, 0.1], [0.2, 0.8]]).to(x)
            mixed = torch.einsum("sr,brtd->bstd", shares, x.unflatten(0, (-1, 2)))
            return mixed.flatten(0, 1) + self.mlp(self.attention(mixed.mean(1))).repeat_interleave(2, 0)

    def __init__(self) -> None:
        super().__init__(self.Layer, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x).repeat_interleave(2, 0)
        return through(self.blocks, x)


class InlineTwice(nn.Module):
    """A function with norms before its parts, called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.qkv, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm1, self.norm2, self.up, self.down = (
            *(nn.LayerNorm(WIDTH) for _ in range(2)),
            nn.Linear(WIDTH, 12),
            nn.Linear(12, WIDTH),
        )

    def block(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm1(x)).chunk(3, -1)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v))
        return x + self.down(F.gelu(self.up(self.norm2(x))))

    def forward(self, x: Tensor) -> Tensor:
        return self.block(self.block(self.embed(x)))


class Pairs(nn.Module):
    """A list of [attention, MLP]."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(WIDTH, WIDTH)
        self.layers = nn.ModuleList(nn.ModuleList([Attention(), MLP()]) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for attention, mlp in self.layers:
            x = attention(x) + x
            x = mlp(x) + x
        return x


class Skip(nn.Module):
    """x + f(x) alone."""

    def __init__(self, branch: nn.Module) -> None:
        super().__init__()
        self.branch = branch

    def forward(self, x: Tensor) -> Tensor:
        return x + self.branch(x)


def sequence() -> nn.Module:
    """The embedding and the layers in one `nn.Sequential`."""
    layers = (nn.Sequential(Skip(Attention()), Skip(MLP())) for _ in range(3))
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), *layers)


class Attends(nn.Module):
    """The block of the official Set Transformer: queries of x and keys of y, in heads that lie in the axis of samples."""

    def __init__(self, size_x: int, size_y: int) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(size, WIDTH) for size in (size_x, size_y, size_y, WIDTH))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        q, k, v = (torch.cat(one.split(WIDTH // 2, 2)) for one in (self.q(x), self.k(y), self.v(y)))
        out = q + torch.softmax(q.bmm(k.transpose(1, 2)) / WIDTH**0.5, 2).bmm(v)
        out = torch.cat(out.split(len(x)), 2)
        return out + F.relu(self.o(out))


class Induced(nn.Module):
    def __init__(self, size: int = WIDTH) -> None:
        super().__init__()
        self.points = nn.Parameter(torch.randn(1, 4, WIDTH))
        self.first, self.second = Attends(WIDTH, size), Attends(size, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(x, self.first(self.points.expand(len(x), -1, -1), x))


class Flex(Attention):
    """FlexAttention, which compiles itself."""

    def forward(self, x: Tensor) -> Tensor:
        from torch.nn.attention.flex_attention import flex_attention

        q, k, v = (one.unsqueeze(1) for one in self.qkv(self.norm(x)).chunk(3, -1))
        seen = flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: torch.where(i >= j, s, -torch.inf))
        return self.out(seen.squeeze(1))


class ReversibleBlock(Block):
    def forward(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        left = left + self.attention(right)
        return left, right + self.mlp(left)


class Reversible(Stack):
    def __init__(self) -> None:
        super().__init__(ReversibleBlock)

    def forward(self, x: Tensor) -> Tensor:
        left, right = self.embed(x), x
        for block in self.blocks:
            left, right = block(left, right)
        return self.head(left + right)
