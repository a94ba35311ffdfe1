"""Healthy models of many kinds, small, for tests that a check fails none of them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WIDTH, HEADS, DEPTH, TOKENS, SAMPLES, VOCABULARY = 16, 2, 3, 8, 2, 40


def vectors(*shape: int) -> Tensor:
    return torch.randn(*(shape or (SAMPLES, TOKENS, WIDTH)), generator=torch.Generator().manual_seed(0))


def random_states() -> Tensor:
    return torch.randint(0, VOCABULARY, (SAMPLES, TOKENS), generator=torch.Generator().manual_seed(1))


def encoder(**options) -> nn.Module:
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, batch_first=True, **options)
    return nn.TransformerEncoder(layer, DEPTH, enable_nested_tensor=False)


class Attention(nn.Module):
    """Multi-head attention of x to itself or to `other`."""

    def __init__(self, causal: bool = True) -> None:
        super().__init__()
        self.q, self.kv, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.causal = causal

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        maps = (self.q(x), *self.kv(x if other is None else other).chunk(2, -1))
        q, k, v = (one.unflatten(-1, (HEADS, -1)).transpose(1, 2) for one in maps)  # (B, H, T, d)
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).flatten(-2))


class MLP(nn.Sequential):
    def __init__(self, width: int = WIDTH) -> None:
        super().__init__(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))


class Block(nn.Module):
    """A pre-norm block. The subclasses differ in how a branch is joined to its state."""

    def __init__(self, causal: bool = True) -> None:
        super().__init__()
        self.attention, self.mlp = Attention(causal), MLP()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ReZero(Block):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.gate * self.attention(x)
        return x + self.gate * self.mlp(x)


class PeriNorm(Block):
    def __init__(self) -> None:
        super().__init__()
        self.norm3, self.norm4 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.norm3(self.attention(self.norm1(x)))
        return x + self.norm4(self.mlp(self.norm2(x)))


class Parallel(Block):
    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        return x + self.attention(y) + self.mlp(y)


class LayerScale(Block):
    def __init__(self) -> None:
        super().__init__(causal=False)
        self.scale = nn.Parameter(torch.full((WIDTH,), 1e-4))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.scale * self.attention(self.norm1(x))
        return x + self.scale * self.mlp(self.norm2(x))


class Experts(nn.Module):
    """Each token goes to the best of four experts."""

    def __init__(self) -> None:
        super().__init__()
        self.router, self.experts = nn.Linear(WIDTH, 4), nn.ModuleList(MLP() for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        weight, chosen = self.router(x).softmax(-1).max(-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            out[chosen == number] = expert(x[chosen == number])
        return out * weight[..., None]


class MoE(Block):
    def __init__(self) -> None:
        super().__init__()
        self.mlp = Experts()


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.lstm = nn.LayerNorm(WIDTH), nn.LSTM(WIDTH, WIDTH, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.lstm(self.norm(x))[0]


class MixerBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.channels = MLP(TOKENS), MLP()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.tokens(self.norm1(x).mT).mT
        return x + self.channels(self.norm2(x))


class Convolutions(nn.Module):
    """A block of a residual network, (B, C, H, W)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(WIDTH, WIDTH, 3, padding=1) for _ in range(2))
        self.norm1, self.norm2 = nn.BatchNorm2d(WIDTH), nn.BatchNorm2d(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return (x + self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))).relu()


class HyperBlock(Block):
    """Static hyper-connections of two streams a token, (B, T, 2, D)."""

    def __init__(self) -> None:
        super().__init__()
        self.read, self.write = nn.Parameter(torch.tensor([1.0, 0.5])), nn.Parameter(torch.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        for branch, norm in ((self.attention, self.norm1), (self.mlp, self.norm2)):
            y = branch(norm((self.read[:, None] * x).sum(-2)))
            x = x + self.write[:, None] * y[..., None, :]
        return x


class Hyper(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(HyperBlock() for _ in range(DEPTH))

    def forward(self, x: Tensor) -> Tensor:
        x = x[..., None, :].repeat(1, 1, 2, 1)
        for block in self.blocks:
            x = block(x)
        return x.sum(-2)


class GPT(nn.Module):
    """Follow nanoGPT: learned positions, weights of std 0.02, tied logits."""

    def __init__(self, std: float = 0.02) -> None:
        super().__init__()
        self.embed, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(TOKENS, WIDTH)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(DEPTH)), nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        for one in self.parameters():
            if one.dim() > 1:
                nn.init.normal_(one, std=std)
        for one in self.modules():
            if isinstance(one, nn.Linear) and one.bias is not None:
                nn.init.zeros_(one.bias)
        self.head.weight = self.embed.weight

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x) + self.places.weight[: x.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Embedded(nn.Module):
    """Tokens with a place vector, layers, and a mean for a class."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.places = nn.Linear(WIDTH, WIDTH), nn.Parameter(torch.randn(1, TOKENS, WIDTH) * 0.02)
        self.layers, self.head = encoder(norm_first=True, activation="gelu"), nn.Linear(WIDTH, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(self.embed(x) + self.places).mean(1))


def stack(block: type[nn.Module]) -> nn.Module:
    return nn.Sequential(*(block() for _ in range(DEPTH)))


def initialised(make, **weights: float) -> nn.Module:
    """Return a model whose matrices are drawn anew: orthogonal, or with a std."""
    model = make()
    for one in model.parameters():
        if one.dim() > 1 and "std" in weights:
            nn.init.normal_(one, std=weights["std"])
        elif one.dim() > 1:
            nn.init.orthogonal_(one)
    return model


KINDS = {
    "post-norm encoder": (encoder, vectors()),
    "pre-norm encoder, orthogonal": (lambda: initialised(lambda: encoder(norm_first=True)), vectors()),
    "nanoGPT": (GPT, random_states()),
    "nanoGPT, std 0.1": (lambda: GPT(0.1), random_states()),
    "ReZero": (lambda: stack(ReZero), vectors()),
    "peri-norm": (lambda: stack(PeriNorm), vectors()),
    "parallel branches": (lambda: stack(Parallel), vectors()),
    "LayerScale": (lambda: stack(LayerScale), vectors()),
    "experts": (lambda: stack(MoE), vectors()),
    "LSTM": (lambda: stack(Recurrent), vectors()),
    "MLP-mixer": (lambda: stack(MixerBlock), vectors()),
    "convolutions": (lambda: stack(Convolutions), vectors(2, WIDTH, 5, 5)),
    "hyper-connections": (Hyper, vectors()),
    "classifier": (Embedded, vectors()),
    "small weights": (lambda: initialised(lambda: stack(Block), std=0.05), vectors()),
}
LIBRARY = ("gpt2", "llama", "bert", "vit")
LONG = ("t5", "albert", "modernbert", "mamba", "mixtral", "deberta-v2", "xlnet")
