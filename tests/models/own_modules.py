"""Modules of five kinds as people write them, small: what any module means in the tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from stream_kinds import through
from torch import Tensor, nn
from unusual_models import DEPTH, MLP, Attention, Block, D, Language, Scan, T, V, rotary
from watched import Gpt


class DecoderBlock(Block):
    def __init__(self) -> None:
        super().__init__(Attention(turn=rotary), norm=nn.RMSNorm)


class Decoder(Language):
    """Rotary positions, RMSNorm, tied logits in a dict."""

    def __init__(self) -> None:
        super().__init__(DecoderBlock, placed=False)
        self.head.weight = self.embed.weight

    def forward(self, numbers: Tensor) -> dict[str, Tensor]:
        return {"logits": super().forward(numbers)}


class HybridBlock(Block):
    """Mixers differ by layer: scans, and attention in every second; an MLP in those alone."""

    def __init__(self, attention: bool) -> None:
        super().__init__(Attention(turn=rotary) if attention else Scan())
        self.wide = attention

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mixer(self.norm1(x))
        return x + self.mlp(self.norm2(x)) if self.wide else x


class Hybrid(Decoder):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(HybridBlock(attention) for attention in (False, True, False, True))


class GraphLayer(nn.Module):
    """Attention among neighbours of a graph, on (nodes, width), without an axis of samples."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(D, D) for _ in range(3))
        self.norm1, self.norm2, self.mlp = nn.LayerNorm(D), nn.LayerNorm(D), MLP()

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges
        scores = (self.q(x)[target] * self.k(x)[source]).sum(-1) / 4
        weights = torch.exp(scores - scores.max())
        total = torch.zeros(len(x), dtype=x.dtype).index_add_(0, target, weights) + 1e-9
        message = torch.zeros_like(x).index_add_(0, target, weights[:, None] * self.v(x)[source])
        x = self.norm1(x + message / total[:, None])
        return self.norm2(x + self.mlp(x))


class GraphTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inside, self.layers = nn.Linear(5, D), nn.ModuleList(GraphLayer() for _ in range(DEPTH))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return through(self.layers, self.inside(x), edge_index)


def nano_gpt() -> Gpt:
    return Gpt(DEPTH, D, 2, V)


def encoder(batch_first: bool = True) -> nn.Module:
    layer = nn.TransformerEncoderLayer(D, 2, D, batch_first=batch_first)
    return nn.TransformerEncoder(layer, DEPTH, enable_nested_tensor=False)


def tokens(samples: int = 2) -> Tensor:
    return torch.randint(0, V, (samples, T), generator=torch.Generator().manual_seed(5))


def vectors(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(6))


def graph_inputs() -> tuple[Tensor, Tensor]:
    """Return a ring of 9 nodes with chords, without loops."""
    here = torch.arange(9)
    pairs = [torch.stack([here, (here + step) % 9]) for step in (1, 2, 8, 7)]
    return vectors(9, 5), torch.cat(pairs, 1)


# kind -> (a module, its inputs, layers, branches that mix tokens, that do not, causal)
KINDS: dict[str, tuple[Callable[[], nn.Module], Any, int, int, int, bool]] = {
    "decoder": (Decoder, tokens(), DEPTH, 3, 3, True),
    "encoder": (encoder, vectors(2, T, D), DEPTH, 3, 3, False),
    "hybrid": (Hybrid, tokens(), 4, 4, 2, True),
    "nanogpt": (nano_gpt, {"tokens": tokens()}, DEPTH, 3, 3, True),
    "graph": (GraphTransformer, graph_inputs(), DEPTH, 3, 3, False),
}
