"""Small modules of many kinds, healthy, and bugs in them: cases for the tests of `check`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from stream_kinds import through
from torch import Tensor, nn

D, H, T, DEPTH, V = 32, 4, 12, 3, 40


def ids(seed: int = 1) -> Tensor:
    return torch.randint(1, V, (3, T), generator=torch.Generator().manual_seed(seed))


def vectors(*shape: int) -> Tensor:
    return torch.randn(*(shape or (3, T, D)), generator=torch.Generator().manual_seed(2))


def causal(count: int) -> Tensor:
    return torch.ones(count, count, dtype=torch.bool).tril()


def every(count: int) -> Tensor:
    return torch.ones(count, count, dtype=torch.bool)


def heads(x: Tensor, count: int = H) -> Tensor:
    return x.unflatten(-1, (count, -1)).transpose(1, 2)  # (B, T, D) -> (B, H, T, d)


class Attention(nn.Module):
    """Attention whose parts can be replaced: the mask, the scale, a bias of scores, the weights of scores, and what q and k become."""

    def __init__(self, mask: Callable[[int], Tensor] = causal, *, scale: float = (D // H) ** -0.5, bias: Any = None,
                 weigh: Callable[[Tensor], Tensor] = lambda s: s.softmax(-1), turn: Callable[[Tensor], Tensor] = lambda x: x,
                 groups: int = H) -> None:  # fmt: skip
        super().__init__()
        self.q, self.kv, self.out = nn.Linear(D, D), nn.Linear(D, 2 * groups * D // H), nn.Linear(D, D)
        self.mask, self.scale, self.weigh, self.turn, self.groups = mask, scale, weigh, turn, groups
        self.bias = bias

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        q = self.turn(heads(self.q(x)))
        k, v = (heads(one, self.groups) for one in self.kv(x if other is None else other).chunk(2, -1))
        k, v = (one.repeat_interleave(H // self.groups, 1) for one in (self.turn(k), v))
        scores = q @ k.mT * self.scale
        if self.bias is not None:
            scores = scores + (self.bias(x.shape[1]) if callable(self.bias) else self.bias)
        if other is None:
            scores = scores.masked_fill(~self.mask(x.shape[1]), -torch.inf)
        return self.out((self.weigh(scores) @ v).transpose(1, 2).flatten(-2))


class MLP(nn.Sequential):
    def __init__(self, width: int = D, function: nn.Module | None = None) -> None:
        super().__init__(nn.Linear(width, 2 * width), function or nn.GELU(), nn.Linear(2 * width, width))


class Block(nn.Module):
    def __init__(
        self, mixer: nn.Module, mlp: nn.Module | None = None, norm: Callable[[int], nn.Module] = nn.LayerNorm
    ) -> None:
        super().__init__()
        self.norm1, self.mixer, self.norm2, self.mlp = norm(D), mixer, norm(D), mlp or MLP()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mixer(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Language(nn.Module):
    """Token numbers to logits."""

    def __init__(self, block: Callable[[], nn.Module], placed: bool = True) -> None:
        super().__init__()
        self.embed, self.places = nn.Embedding(V, D), nn.Embedding(T, D) if placed else None
        self.blocks = nn.ModuleList(block() for _ in range(DEPTH))
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, V, bias=False)

    def forward(self, numbers: Tensor) -> Tensor:
        x = self.embed(numbers) if self.places is None else self.embed(numbers) + self.places.weight[: numbers.shape[1]]
        x = through(self.blocks, x)
        return self.head(self.norm(x))


def vision(block: Callable[[], nn.Module]) -> nn.Module:
    return nn.Sequential(*(block() for _ in range(DEPTH)))


class Experts(nn.Module):
    """The best two of four experts, and one that all tokens share."""

    def __init__(self) -> None:
        super().__init__()
        self.router, self.experts, self.shared = nn.Linear(D, 4), nn.ModuleList(MLP() for _ in range(4)), MLP()

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(0, 1)
        weights, chosen = self.router(flat).softmax(-1).topk(2)
        out = self.shared(flat)
        for number, expert in enumerate(self.experts):
            row, place = (chosen == number).nonzero(as_tuple=True)
            out = out.index_add(0, row, weights[row, place, None] * expert(flat[row]))
        return out.view_as(x)


class Registers(nn.Module):
    """A ViT of patches with a class token and four registers."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, D, 4, 4)
        self.extra, self.places = nn.Parameter(0.02 * torch.randn(1, 5, D)), nn.Parameter(0.02 * torch.randn(1, 16, D))
        self.blocks, self.head = nn.ModuleList(Block(Attention(every)) for _ in range(DEPTH)), nn.Linear(D, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).mT + self.places
        x = torch.cat([self.extra.expand(len(x), -1, -1), x], 1)
        x = through(self.blocks, x)
        return self.head(x[:, 0])


class Convolution(nn.Module):
    """Build a block of a Conformer."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.depthwise = nn.Conv1d(D, 2 * D, 1), nn.Conv1d(D, D, 5, padding=2, groups=D)
        self.norm, self.out = nn.BatchNorm1d(D), nn.Conv1d(D, D, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(F.silu(self.norm(self.depthwise(F.glu(self.inside(x.mT), 1))))).mT


class Conformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.attention, self.convolution, self.second = MLP(), Attention(every), Convolution(), MLP()
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(5))

    def forward(self, x: Tensor) -> Tensor:
        x = x + 0.5 * self.first(self.norms[0](x))
        x = x + self.attention(self.norms[1](x))
        x = x + self.convolution(self.norms[2](x))
        x = x + 0.5 * self.second(self.norms[3](x))
        return self.norms[4](x)


class Relative(nn.Module):
    """T5's bias, by buckets of distance."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(9, H)

    def forward(self, count: int) -> Tensor:
        place = torch.arange(count)
        return self.table((place - place[:, None]).clamp(-4, 4) + 4).permute(2, 0, 1)


class Scan(nn.Module):
    """A selective state space, token after token."""

    def __init__(self, states: int = 4) -> None:
        super().__init__()
        self.inside, self.conv, self.out = nn.Linear(D, 2 * D), nn.Conv1d(D, D, 3, groups=D), nn.Linear(D, D)
        self.step, self.bc, self.log_a = nn.Linear(D, D), nn.Linear(D, 2 * states), nn.Parameter(torch.zeros(D, states))
        self.skip = nn.Parameter(torch.ones(D))

    def forward(self, x: Tensor) -> Tensor:
        u, gate = self.inside(x).chunk(2, -1)
        u = F.silu(self.conv(F.pad(u.mT, (2, 0))).mT)
        step, (b, c) = F.softplus(self.step(u)), self.bc(u).chunk(2, -1)
        state, rows = 0, []
        for t in range(x.shape[1]):
            decay = torch.exp(-step[:, t, :, None] * self.log_a.exp())
            state = decay * state + (step[:, t] * u[:, t])[..., None] * b[:, t, None]
            rows.append((state * c[:, t, None]).sum(-1))
        return self.out((torch.stack(rows, 1) + self.skip * u) * F.silu(gate))


class Retention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.gate, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D), nn.Linear(D, D)
        self.norm = nn.GroupNorm(H, H)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads(one) for one in self.qkv(x).chunk(3, -1))
        place = torch.arange(x.shape[1])
        apart = place[:, None] - place
        decay = torch.where(apart >= 0, (1 - 2.0 ** -torch.arange(1, H + 1))[:, None, None] ** apart.clamp_min(0), 0.0)
        y = (q @ k.mT * (D // H) ** -0.5 * decay.to(x)) @ v
        y = self.norm(y.transpose(1, 2).flatten(0, 1)).unflatten(0, x.shape[:2]).flatten(-2)
        return self.out(F.silu(self.gate(x)) * y)


class Linear(nn.Module):
    """Attention with elu + 1 in place of a softmax."""

    def __init__(self, mask: Callable[[int], Tensor] = causal) -> None:
        super().__init__()
        self.qkv, self.out, self.mask = nn.Linear(D, 3 * D), nn.Linear(D, D), mask

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads(one) for one in self.qkv(x).chunk(3, -1))
        q, k = F.elu(q) + 1, F.elu(k) + 1
        weights = (q @ k.mT) * self.mask(x.shape[1])
        return self.out(((weights @ v) / weights.sum(-1, keepdim=True)).transpose(1, 2).flatten(-2))


class Perceiver(nn.Module):
    """Latents read the data, then each other, and outputs read them."""

    def __init__(self) -> None:
        super().__init__()
        self.latents, self.asks = nn.Parameter(torch.randn(1, 6, D)), nn.Parameter(torch.randn(1, 5, D))
        self.read, self.write = Attention(every), Attention(every)
        self.blocks, self.norm = nn.ModuleList(Block(Attention(every)) for _ in range(DEPTH)), nn.LayerNorm(D)

    def forward(self, data: Tensor) -> Tensor:
        x = self.latents.expand(len(data), -1, -1)
        x = x + self.read(self.norm(x), data)
        x = through(self.blocks, x)
        return self.write(self.asks.expand(len(data), -1, -1), x)


class DualPath(nn.Module):
    """Layers within chunks and across them in turn. (B, N, K, D)"""

    def __init__(self) -> None:
        super().__init__()
        self.within, self.across = Block(Attention(every)), Block(Attention(every))

    def forward(self, x: Tensor) -> Tensor:
        x = self.within(x.flatten(0, 1)).view(x.shape)
        turned = x.transpose(1, 2)
        return self.across(turned.flatten(0, 1)).view(turned.shape).transpose(1, 2)


class CrossBlock(Block):
    def __init__(self) -> None:
        super().__init__(Attention())
        self.cross, self.norm3 = Attention(every), nn.LayerNorm(D)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        x = x + self.mixer(self.norm1(x))
        x = x + self.cross(self.norm3(x), memory)
        return x + self.mlp(self.norm2(x))


class Reader(nn.Module):
    """A decoder that reads an audio encoder's output."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.places = nn.Embedding(V, D), nn.Embedding(T, D)
        self.blocks, self.norm = nn.ModuleList(CrossBlock() for _ in range(DEPTH)), nn.LayerNorm(D)
        nn.init.normal_(self.embed.weight, std=0.02)

    def forward(self, numbers: Tensor, memory: Tensor) -> Tensor:
        x = self.embed(numbers) + self.places.weight[: numbers.shape[1]]
        x = through(self.blocks, x, memory)
        return self.norm(x) @ self.embed.weight.mT


class UShaped(nn.Module):
    """A U-ViT: the second half reads [x, earlier x] through a map, in its blocks or before them."""

    class Up(Block):
        def __init__(self, mixer: nn.Module) -> None:
            super().__init__(mixer)
            self.join = nn.Linear(2 * D, D)

        def forward(self, x: Tensor, earlier: Tensor | None = None) -> Tensor:
            return super().forward(x if earlier is None else self.join(torch.cat([x, earlier], -1)))

    def __init__(self, inside: bool = True) -> None:
        super().__init__()
        self.down = nn.ModuleList(Block(Attention(every)) for _ in range(3))
        self.up = nn.ModuleList(self.Up(Attention(every)) for _ in range(3))
        self.middle, self.inside = Block(Attention(every)), inside

    def forward(self, x: Tensor) -> Tensor:
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
        x = self.middle(x)
        for block in self.up:
            joined = torch.cat([x, kept.pop()], -1)
            x = block(x, joined[..., D:]) if self.inside else block(block.join(joined))
        return x


class Residual(nn.Module):
    """Build a level of a convolutional U-Net, which may change the width."""

    def __init__(self, inside: int = D, outside: int = D) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, inside), nn.GroupNorm(4, outside)
        self.conv1, self.conv2 = nn.Conv2d(inside, outside, 3, padding=1), nn.Conv2d(outside, outside, 3, padding=1)
        self.short = nn.Conv2d(inside, outside, 1) if inside != outside else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(F.silu(self.norm1(x)))
        return self.short(x) + self.conv2(F.silu(self.norm2(y)))


class UNet(nn.Module):
    """Three sizes of pictures, with joined skips. `each`: blocks of a size."""

    def __init__(self, each: int = 2) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, D, 3, padding=1)
        self.down = nn.ModuleList(nn.ModuleList(Residual() for _ in range(each)) for _ in range(2))
        self.smaller = nn.ModuleList(nn.Conv2d(D, D, 3, 2, 1) for _ in range(2))
        self.middle = nn.Sequential(*(Residual() for _ in range(each)))
        self.up = nn.ModuleList(
            nn.ModuleList([Residual(2 * D, D), *(Residual() for _ in range(each - 1))]) for _ in range(2)
        )

    def forward(self, x: Tensor) -> Tensor:
        x, kept = self.stem(x), []
        for blocks, smaller in zip(self.down, self.smaller, strict=True):
            x = through(blocks, x)
            kept.append(x)
            x = smaller(x)
        x = self.middle(x)
        for blocks in self.up:
            x = through(blocks, torch.cat([F.interpolate(x, scale_factor=2.0), kept.pop()], 1))
        return x


class Windows(nn.Module):
    """Attention in windows of four tokens, which every second layer shifts by two."""

    def __init__(self, shift: int) -> None:
        super().__init__()
        self.inside, self.shift = Attention(every, bias=Relative()), shift

    def forward(self, x: Tensor) -> Tensor:
        x = x.roll(-self.shift, 1)
        return (
            self.inside(x.unflatten(1, (-1, 4)).flatten(0, 1))
            .unflatten(0, (len(x), -1))
            .flatten(1, 2)
            .roll(self.shift, 1)
        )


def windows() -> nn.Module:
    return nn.Sequential(*(Block(Windows(2 * (n % 2))) for n in range(DEPTH)))


class SpatialGate(nn.Module):
    """Build a block of a gMLP."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.norm, self.out = nn.Linear(D, 4 * D), nn.LayerNorm(2 * D), nn.Linear(2 * D, D)
        self.places = nn.Conv1d(T, T, 1)
        nn.init.normal_(self.places.weight, std=1e-3)
        nn.init.ones_(self.places.bias)

    def forward(self, x: Tensor) -> Tensor:
        u, v = F.gelu(self.inside(x)).chunk(2, -1)
        return self.out(u * self.places(self.norm(v)))


class Parallel(Block):
    """Build a block of PaLM, whose branches read one norm."""

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        return x + self.mixer(y) + self.mlp(y)


class Modulated(Block):
    """Build a block of a DiT. A vector gives shifts, scales and gates, which begin at zero."""

    def __init__(self) -> None:
        super().__init__(Attention(every))
        self.made = nn.Linear(D, 6 * D)
        nn.init.zeros_(self.made.weight)
        nn.init.zeros_(self.made.bias)

    def forward(self, x: Tensor, about: Tensor) -> Tensor:
        a, b, c, d, e, f = self.made(F.silu(about))[:, None].chunk(6, -1)
        x = x + c * self.mixer(self.norm1(x) * (1 + a) + b)
        return x + f * self.mlp(self.norm2(x) * (1 + d) + e)


class Diffusion(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Modulated() for _ in range(DEPTH))

    def forward(self, x: Tensor, about: Tensor) -> Tensor:
        return through(self.blocks, x, about)


class LongConvolution(nn.Module):
    """Build a block of a Hyena: a gated causal convolution as long as the sequence, by Fourier transforms."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.out, self.kernel = nn.Linear(D, 2 * D), nn.Linear(D, D), nn.Parameter(0.1 * torch.randn(D, T))

    def forward(self, x: Tensor) -> Tensor:
        gate, v = self.inside(x).chunk(2, -1)
        size = 2 * x.shape[1]
        y = torch.fft.irfft(torch.fft.rfft(v.mT, size) * torch.fft.rfft(self.kernel.to(v), size), size)[
            ..., : x.shape[1]
        ]
        return self.out(gate * y.mT)


class TimeMix(nn.Module):
    """Build a block of an RWKV, which mixes in the token before and reads a decaying average."""

    def __init__(self) -> None:
        super().__init__()
        self.share, self.decay = nn.Parameter(torch.rand(D)), nn.Parameter(torch.linspace(-3, 1, D))
        self.r, self.k, self.v, self.out = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        mixed = x + (F.pad(x, (0, 0, 1, -1)) - x) * self.share
        r, k, v = self.r(mixed).sigmoid(), self.k(mixed).exp(), self.v(mixed)
        top, below, rows = torch.zeros_like(v[:, 0]), torch.zeros_like(v[:, 0]), []
        for t in range(x.shape[1]):
            keep = torch.exp(-self.decay.exp())
            top, below = keep * top + k[:, t] * v[:, t], keep * below + k[:, t]
            rows.append(r[:, t] * top / below)
        return self.out(torch.stack(rows, 1))


def rotary(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2])[:, None] / 10_000 ** (torch.arange(half) / half)
    a, b = x.chunk(2, -1)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1).to(x)


def normed(x: Tensor) -> Tensor:
    return rotary(F.rms_norm(x, x.shape[-1:]))


def near(count: int) -> Tensor:
    return causal(count) & ~causal(count).tril(-4)


def alibi(sign: float = 1.0) -> Callable[[int], Tensor]:
    slopes = 2.0 ** (-8 / H * torch.arange(1, H + 1))

    def bias(count: int) -> Tensor:
        place = torch.arange(count)
        return -sign * slopes[:, None, None] * (place[:, None] - place)

    return bias


def capped(scores: Tensor) -> Tensor:
    return (20 * (scores / 20).tanh()).masked_fill(scores.isinf(), -torch.inf).softmax(-1)


def language(mixer: Callable[[], nn.Module], placed: bool = True, norm: Any = nn.LayerNorm) -> nn.Module:
    return Language(lambda: Block(mixer(), norm=norm), placed)


class Closure(Block):
    """The block of minGPT: a function that the block holds calls its MLP, with dropout."""

    def __init__(self) -> None:
        super().__init__(Attention())
        mlp = nn.Sequential(self.mlp, nn.Dropout(0.5))
        self.dropped, self.read = mlp, lambda x: mlp(x)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mixer(self.norm1(x))
        return x + self.read(self.norm2(x))


class WithKeys(Language):
    """Returns the keys of its last layer, (B, H, T, d), for a cache."""

    def forward(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        keys = []
        self.blocks[-1].mixer.turn = lambda x: keys.append(x) or x
        return super().forward(numbers), keys[-1]


class TokensFirst(nn.Module):
    """Layers of PyTorch that read (tokens, samples, D), with positions along `axis`."""

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.embed, self.places = nn.Embedding(V, D), nn.Embedding(64, D)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(D, H, 2 * D), DEPTH, enable_nested_tensor=False)
        self.axis = axis

    def forward(self, numbers: Tensor) -> Tensor:
        places = self.places(torch.arange(numbers.shape[self.axis]))
        return self.layers(self.embed(numbers) + places.unsqueeze(1 - self.axis))


class MakesMask(Attention):
    """An encoder's attention that makes a causal mask and does not use it."""

    def forward(self, x: Tensor) -> Tensor:
        torch.ones(x.shape[1], x.shape[1]).tril().bool()
        return super().forward(x)


class ReZero(Block):
    def __init__(self) -> None:
        super().__init__(Attention())
        self.gate = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.gate * self.mixer(x)
        return x + self.gate * self.mlp(x)


class PeriNorm(Block):
    def __init__(self) -> None:
        super().__init__(Attention())
        self.norm3, self.norm4 = nn.RMSNorm(D), nn.RMSNorm(D)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.norm3(self.mixer(self.norm1(x)))
        return x + self.norm4(self.mlp(self.norm2(x)))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.lstm = nn.LayerNorm(D), nn.LSTM(D, D, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.lstm(self.norm(x))[0]


class Convolutions(nn.Module):
    """A block of a residual network, (B, C, H, W)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(D, D, 3, padding=1) for _ in range(2))
        self.norm1, self.norm2 = nn.BatchNorm2d(D), nn.BatchNorm2d(D)

    def forward(self, x: Tensor) -> Tensor:
        return (x + self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))).relu()


class HyperBlock(Block):
    """Static hyper-connections of two streams a token, (B, T, 2, D)."""

    def __init__(self) -> None:
        super().__init__(Attention())
        self.read, self.write = nn.Parameter(torch.tensor([1.0, 0.5])), nn.Parameter(torch.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        for branch, norm in ((self.mixer, self.norm1), (self.mlp, self.norm2)):
            y = branch(norm((self.read[:, None] * x).sum(-2)))
            x = x + self.write[:, None] * y[..., None, :]
        return x


class Hyper(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(HyperBlock() for _ in range(DEPTH))

    def forward(self, x: Tensor) -> Tensor:
        x = x[..., None, :].repeat(1, 1, 2, 1)
        x = through(self.blocks, x)
        return x.sum(-2)


class Padded(nn.Module):
    """A BERT of PyTorch's layers with a padding mask. `use`: what becomes of the mask, `pool`: of the last states."""

    def __init__(
        self,
        use: Callable[[Tensor], Tensor | None] = lambda mask: mask,
        padding: int | None = None,
        pool: Callable[[Tensor], Tensor] = lambda x: x,
    ) -> None:
        super().__init__()
        self.embed, self.use, self.pool = nn.Embedding(V, D, padding_idx=padding), use, pool
        self.layers = of_pytorch()

    def forward(self, numbers: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        mask = numbers == 0 if padding_mask is None else padding_mask
        return self.pool(self.layers(self.embed(numbers), src_key_padding_mask=self.use(mask)))


def of_pytorch(**options: Any) -> nn.Module:
    layer = nn.TransformerEncoderLayer(D, H, 2 * D, batch_first=True, **options)
    return nn.TransformerEncoder(layer, DEPTH, enable_nested_tensor=False)


def drawn(model: Any, std: float | None) -> nn.Module:
    """Draw the matrices of a model anew, orthogonal or with a standard deviation."""
    for one in model.parameters():
        if one.dim() > 1:
            nn.init.orthogonal_(one) if std is None else nn.init.normal_(one, std=std)
    return model


def nano(std: float) -> nn.Module:
    """Follow nanoGPT: learned positions, tied logits."""
    model: Any = drawn(language(Attention), std)
    model.head.weight = model.embed.weight
    for name, one in model.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(one)
    return model


def padded() -> Tensor:
    numbers = ids()
    numbers[:, T - 3 :] = 0
    return numbers


# kind -> model, inputs
HEALTHY: dict[str, tuple[Callable[[], nn.Module], Any]] = {
    "experts": (lambda: Language(lambda: Block(Attention(), Experts())), ids()),
    "ViT with registers": (Registers, vectors(2, 3, 16, 16)),
    "Conformer": (lambda: vision(Conformer), vectors()),
    "T5": (lambda: language(lambda: Attention(every, bias=Relative(), scale=1.0), False, nn.RMSNorm), ids()),
    "selective scan": (lambda: language(Scan, False), ids()),
    "retention": (lambda: language(Retention, False), ids()),
    "linear attention": (lambda: language(Linear), ids()),
    "linear attention both ways": (lambda: vision(lambda: Block(Linear(every))), vectors()),
    "perceiver": (Perceiver, vectors()),
    "dual path": (lambda: vision(DualPath), vectors(2, 5, 6, D)),
    "cross-attention": (Reader, (ids(), vectors(3, 7, D))),
    "U-ViT": (UShaped, vectors()),
    "U-ViT, joined before the blocks": (lambda: UShaped(inside=False), vectors()),
    "U-Net": (UNet, vectors(2, 3, 16, 16)),
    "U-Net, one block a size": (lambda: UNet(1), vectors(2, 3, 16, 16)),
    "shifted windows": (windows, vectors()),
    "grouped, normed, capped": (
        lambda: language(lambda: Attention(near, turn=normed, weigh=capped, groups=2), False, nn.RMSNorm),
        ids(),
    ),
    "ALiBi": (lambda: language(lambda: Attention(bias=alibi()), False), ids()),
    "gMLP": (lambda: vision(lambda: Block(SpatialGate())), vectors()),
    "parallel, rotary": (lambda: Language(lambda: Parallel(Attention(turn=rotary, groups=1)), False), ids()),
    "DiT": (Diffusion, (vectors(), vectors(3, D))),
    "long convolution": (lambda: language(LongConvolution, False), ids()),
    "RWKV": (lambda: language(TimeMix, False), ids()),
    "functions that hold modules": (lambda: Language(Closure), ids()),
    "keys of as many heads as tokens": (lambda: WithKeys(lambda: Block(Attention())), ids()[:, :H]),
    "as many tokens, first, as samples": (lambda: TokensFirst(0), ids()[:, :3]),
    "mask that is not used": (lambda: language(lambda: MakesMask(every)), ids()),
    "post-norm encoder": (of_pytorch, vectors()),
    "pre-norm encoder, orthogonal": (lambda: drawn(of_pytorch(norm_first=True), None), vectors()),
    "nanoGPT": (lambda: nano(0.02), ids()),
    "nanoGPT, std 0.1": (lambda: nano(0.1), ids()),
    "ReZero": (lambda: vision(ReZero), vectors()),
    "peri-norm": (lambda: vision(PeriNorm), vectors()),
    "LSTM": (lambda: vision(Recurrent), vectors()),
    "convolutions": (lambda: vision(Convolutions), vectors(2, D, 5, 5)),
    "hyper-connections": (Hyper, vectors()),
    "small weights": (lambda: drawn(vision(lambda: Block(Attention())), 0.05), vectors()),
    "encoder with padding": (lambda: Padded(padding=0), padded()),
    "encoder with a mask": (Padded, (padded(), padded() == 0)),
    "encoder and decoder": (
        lambda: nn.Transformer(D, H, 2, 2, 64, batch_first=True),
        (vectors(2, 9, D), vectors(2, 7, D)),
    ),
    "rectifiers": (lambda: Language(lambda: Block(Attention(), MLP(function=nn.ReLU()))), ids()),
    "a head of zeros": (lambda: changed(lambda m: m.head.weight.zero_())(), ids()),
}


class OldSkip(Block):
    """The second skip is the state before the first addition."""

    def forward(self, x: Tensor) -> Tensor:
        y = x + self.mixer(self.norm1(x))
        return x + self.mlp(self.norm2(y))


class OlderBlock(Language):
    """The skip around the third block's parts is the state before the second block."""

    def forward(self, numbers: Tensor) -> Tensor:
        x = before = self.embed(numbers) + self.places.weight[: numbers.shape[1]]
        for number, block in enumerate(self.blocks):
            skip, before = (before if number == 2 else x), x
            x = skip + block.mixer(block.norm1(x))
            x = x + block.mlp(block.norm2(x))
        return self.head(self.norm(x))


class NoSkip(Block):
    """Attention without its skip."""

    def forward(self, x: Tensor) -> Tensor:
        x = self.mixer(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Doubled(Block):
    """x += f(x), and then the old state, which is the new one, is added."""

    def forward(self, x: Tensor) -> Tensor:
        before = x
        x += self.mixer(self.norm1(x))
        x = before + x
        return x + self.mlp(self.norm2(x))


class OverHeads(Attention):
    """Attention whose axes of heads and tokens are not transposed."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (one.unflatten(-1, (H, -1)) for one in (self.q(x), *self.kv(x).chunk(2, -1)))
        return self.out(F.scaled_dot_product_attention(q, k, v).flatten(-2))


class Continued(Attention):
    """Attention with six cached keys and values, which its mask does not count."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads(one) for one in (self.q(x), *self.kv(x).chunk(2, -1)))
        past = torch.ones_like(q[:, :, :6])
        k, v = (torch.cat([past, one], 2) for one in (k, v))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2))


class Hidden(Language):
    """An encoder that reads a mask of padding, (B, T) or (B, 1, 1, T); `use` changes it by layer."""

    def __init__(self, use: Callable[[Tensor, int], Tensor]) -> None:
        super().__init__(lambda: Block(Attention(every)))
        self.use = use

    def forward(self, numbers: Tensor, mask: Tensor) -> Tensor:
        for number, block in enumerate(self.blocks):
            block.mixer.bias = -1e9 * self.use(mask.reshape(len(mask), 1, 1, -1), number)
        return super().forward(numbers)


class Apply(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def over_samples(x: Tensor) -> Tensor:
    return F.layer_norm(x.transpose(0, -1), x.shape[:1]).transpose(0, -1)


class Shifted(nn.Module):
    """Positions that begin one later in each sample."""

    def __init__(self, embed: nn.Module) -> None:
        super().__init__()
        self.embed, self.places = embed, nn.Embedding(2 * T, D)

    def forward(self, numbers: Tensor) -> Tensor:
        return self.embed(numbers) + self.places(torch.arange(len(numbers))[:, None] + torch.arange(numbers.shape[1]))


def changed(change: Callable[[Any], Any]) -> Callable[[], nn.Module]:
    """Return a function that makes a decoder and changes it."""

    def make() -> nn.Module:
        model = language(Attention)
        with torch.no_grad():
            change(model)
        return model

    return make


def with_block(place: int, block: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    return changed(lambda m: m.blocks.__setitem__(place, block()))


def encoder(**options: Any) -> Callable[[], nn.Module]:
    return lambda: language(lambda: Attention(every, **options))


def with_mask(model: nn.Module) -> nn.Module:
    model.register_buffer("mask", causal(T))
    return model


class JoinedWrong(Attention):
    """Heads are joined without a transpose."""

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        q, (k, v) = self.q(x), self.kv(x).chunk(2, -1)
        scores = heads(q) @ heads(k).mT * self.scale
        return self.out((scores.softmax(-1) @ heads(v)).reshape(x.shape))


def hooked(path: str, hook: Callable[[Tensor], Tensor]) -> Callable[[], nn.Module]:
    """Return a function that makes a decoder in which this changes what a module returns."""
    return changed(lambda m: m.get_submodule(path).register_forward_hook(lambda module, inputs, output: hook(output)))


def tied(path: str, other: str) -> Callable[[], nn.Module]:
    """Return a function that makes a decoder in which one map has the weight of another."""
    return changed(lambda m: setattr(m.get_submodule(path), "weight", m.get_submodule(other).weight))


# bug -> the check that names it, what it says or where, model; inputs are token numbers
SICK: dict[str, tuple[str, str, Callable[[], nn.Module]]] = {
    "mask transposed": ("no-future-leak", "reversed", lambda: language(lambda: Attention(lambda n: causal(n).mT))),
    "one layer sees the future": ("no-future-leak", "layer 3", with_block(2, lambda: Block(Linear(every)))),
    "softmax over queries": ("attention-alive", "over axis 2", encoder(weigh=lambda s: s.softmax(-2))),
    "attention without skip": ("stream-whole", "blocks.1", with_block(1, lambda: NoSkip(Attention()))),
    "attention without skips": (
        "stream-whole", "around blocks.0.mixer, in 3 of 3", lambda: Language(lambda: NoSkip(Attention()))),
    "older state": ("stream-whole", "older state", lambda: Language(lambda: OldSkip(Attention()))),
    "state before a block": ("stream-whole", "older state", lambda: OlderBlock(lambda: Block(Attention()))),
    "eps too large": ("activations-sane", "eps", lambda: language(Attention, norm=lambda width: nn.LayerNorm(width, eps=1.0))),
    "norm over samples": (
        "samples-independent", "blocks.1", with_block(1, lambda: Block(nn.Sequential(Apply(over_samples), Attention())))),
    "positions shift by sample": ("samples-independent", "place in the batch", changed(lambda m: setattr(m, "embed", Shifted(m.embed)))),
    "ALiBi of the wrong sign": ("positions-differ", "sign", lambda: language(lambda: Attention(bias=alibi(-1.0)), False)),
    "values of a head are zero": (
        "attention-alive", "layer 2, head 0",
        changed(lambda m: [part[D : D + D // H].zero_() for part in m.blocks[1].mixer.kv.parameters()])),
    "queries of a head are zero": (
        "attention-alive", "layer 1, head 0",
        changed(lambda m: [part[: D // H].zero_() for part in m.blocks[0].mixer.q.parameters()])),
    "mask transposed in a layer": (
        "no-future-leak", "layer 3", with_block(2, lambda: Block(Attention(lambda n: causal(n).mT)))),
    "cache is not counted": ("no-future-leak", "offset of a cache", lambda: language(Continued)),
    "batch_first forgotten": ("samples-independent", "batch_first=True", lambda: TokensFirst(1)),
    "heads not transposed in a layer": (
        "attention-alive", "in the attention of layer 2", changed(lambda m: setattr(m.blocks[1], "mixer", OverHeads()))),
    "state added to itself": ("stream-whole", "added twice", with_block(1, lambda: Doubled(Attention()))),
    "queries detached": ("gradients-flow", "queries of layer 2", hooked("blocks.1.mixer.q", Tensor.detach)),
}  # fmt: skip
# the same for what may be meant: the check warns
DOUBTFUL: dict[str, tuple[str, str, Callable[[], nn.Module]]] = {
    "scores times d": ("attention-alive", "read one token", encoder(scale=float(D))),
    "scores by the root of the width": ("attention-alive", "root of the width", encoder(scale=D**-0.5)),
    "scores not scaled": ("attention-alive", "not scaled", encoder(scale=1.0)),
    "positions missing": ("positions-differ", "only the causal mask", lambda: language(Attention, placed=False)),
    "positions in values": (
        "positions-differ",
        "values differ",
        hooked("blocks.1.mixer.kv", lambda kv: torch.cat([kv[..., :D], rotary(kv[..., D:])], -1)),
    ),
    "heads joined wrongly": ("positions-differ", "heads joined", lambda: language(JoinedWrong)),
    "function forgotten": (
        "activations-sane",
        "is a function missing",
        lambda: Language(lambda: Block(Attention(), nn.Sequential(nn.Linear(D, 2 * D), nn.Linear(2 * D, D)))),
    ),
    "mask held and not used": (
        "no-future-leak",
        "is the mask forgotten",
        lambda: with_mask(language(lambda: Attention(every))),
    ),
    "MLPs tied": ("stream-whole", "one matrix", tied("blocks.2.mlp.0", "blocks.1.mlp.0")),
    "output tied to queries": ("stream-whole", "one matrix", tied("blocks.0.mixer.out", "blocks.0.mixer.q")),
    "attention shared": (
        "stream-whole",
        "blocks.2.mixer",
        changed(lambda m: setattr(m.blocks[2], "mixer", m.blocks[1].mixer)),
    ),
}
PADDED = (torch.arange(T) >= T - 4).expand(3, T)
# masks of padding that are not used as they should be: what is said, the mask, its use by layer
HIDING: dict[str, tuple[str, Tensor, Callable[[Tensor, int], Tensor]]] = {
    "not in a layer": ("in the layers before layer 3", PADDED, lambda mask, layer: mask * (layer != 2)),
    "inverted": ("is it inverted", PADDED[:, None, None], lambda mask, layer: ~mask),
}
