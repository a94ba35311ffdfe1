"""Modules of five kinds as people write them, small: what any module means in the tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from watched import Gpt

WIDTH, LAYERS, TOKENS, VOCABULARY = 16, 4, 9, 50


class RMS(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6).type_as(x) * self.weight


def rotated(x: Tensor) -> Tensor:
    """Rotary positions. x (B, H, T, d)"""
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] / 100 ** (torch.arange(half, dtype=x.dtype) / half)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


class RotaryAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (one.unflatten(-1, (2, -1)).transpose(1, 2) for one in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(-2))


class SwiGLU(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.gate, self.down = nn.Linear(WIDTH, 24), nn.Linear(WIDTH, 24), nn.Linear(24, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class DecoderBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attention, self.norm2, self.mlp = RMS(WIDTH), RotaryAttention(), RMS(WIDTH), SwiGLU()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    """RoPE, RMSNorm, SwiGLU."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(DecoderBlock() for _ in range(LAYERS))
        self.norm, self.head = RMS(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens: Tensor) -> dict[str, Tensor]:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return {"logits": self.head(self.norm(x))}


def nano_gpt() -> Gpt:
    return Gpt(LAYERS, WIDTH, 2, VOCABULARY)


class GraphLayer(nn.Module):
    """Attention among neighbours of a graph, on (nodes, width), without an axis of samples."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.ff = nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, WIDTH))

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges
        scores = (self.q(x)[target] * self.k(x)[source]).sum(-1) / 4
        weights = torch.exp(scores - scores.max())
        total = torch.zeros(len(x), dtype=x.dtype).index_add_(0, target, weights) + 1e-9
        message = torch.zeros_like(x).index_add_(0, target, weights[:, None] * self.v(x)[source])
        x = self.norm1(x + message / total[:, None])
        return self.norm2(x + self.ff(x))


class GraphTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inside = nn.Linear(5, WIDTH)
        self.layers = nn.ModuleList(GraphLayer() for _ in range(LAYERS))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.inside(x)
        for layer in self.layers:
            x = layer(x, edge_index)
        return x


class Recurrent(nn.Module):
    """A gated linear recurrence over tokens, as state-space models have it."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.gate, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        decay, value = torch.sigmoid(self.gate(x)), self.inside(x)
        state, states = torch.zeros_like(value[:, 0]), []
        for t in range(x.shape[1]):
            state = decay[:, t] * state + (1 - decay[:, t]) * value[:, t]
            states.append(state)
        return self.out(torch.stack(states, 1))


class HybridBlock(nn.Module):
    """Mixers differ by layer: recurrences, and attention in every second; an MLP in those alone."""

    def __init__(self, attention: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = RMS(WIDTH), RMS(WIDTH)
        self.mixer = RotaryAttention() if attention else Recurrent()
        self.mlp = SwiGLU() if attention else None

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mixer(self.norm1(x))
        return x if self.mlp is None else x + self.mlp(self.norm2(x))


class Hybrid(Decoder):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(HybridBlock(one) for one in (False, True, False, True))


def tokens(samples: int = 2) -> Tensor:
    return torch.randint(0, VOCABULARY, (samples, TOKENS), generator=torch.Generator().manual_seed(5))


def vectors(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(6))


def graph_inputs() -> tuple[Tensor, Tensor]:
    """A ring of 9 nodes with chords, without loops."""
    here = torch.arange(9)
    pairs = [torch.stack([here, (here + step) % 9]) for step in (1, 2, 8, 7)]
    return vectors(9, 5), torch.cat(pairs, 1)


def encoder(norm_first: bool = False, batch_first: bool = True) -> nn.Module:
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 32, batch_first=batch_first, norm_first=norm_first)
    return nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)


# kind -> (a module, its inputs, layers, branches that mix tokens, that do not, causal)
KINDS: dict[str, tuple[Callable[[], nn.Module], Any, int, int, int, bool]] = {
    "decoder": (Decoder, tokens(), LAYERS, 4, 4, True),
    "encoder": (encoder, vectors(2, TOKENS, WIDTH), LAYERS, 4, 4, False),
    "hybrid": (Hybrid, tokens(), LAYERS, 4, 2, True),
    "nanogpt": (nano_gpt, {"tokens": tokens()}, LAYERS, 4, 4, True),
    "graph": (GraphTransformer, graph_inputs(), LAYERS, 4, 4, False),
}
