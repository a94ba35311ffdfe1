"""Attention weights of any implementation, and the units of activation functions, from PyTorch's operations while a block runs.

A softmax over tokens gives the weights directly. `scaled_dot_product_attention` never shows them, so those of a few samples and queries
are computed again. Listening changes nothing: every operation runs with its original arguments. Linear attention, and kernels that
PyTorch does not know, are not seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from rankfall.watch.statistics import chosen_queries, weight_values

SOFTMAX = ("aten::_softmax", "aten::_safe_softmax")
ACTIVATIONS = ("aten::relu", "aten::gelu", "aten::silu", "aten::relu_")
ZERO = 1e-3  # of the largest output: a unit below it for every token is dead, as in `rankfall check`
FUSED = "aten::_scaled_dot_product"  # flash, efficient, cudnn, ..., of every device


class AttentionListener(TorchDispatchMode):
    """Append the values of each attention map (B, H, T, T) to `maps` while this mode is active."""

    supports_higher_order_operators = True  # flex_attention and the like pass through, unrecorded

    def __init__(self, batch: int, tokens: int, samples: int, real: Tensor | None) -> None:
        super().__init__()
        self.batch, self.tokens, self.samples = batch, tokens, min(samples, batch)
        self.real = None if real is None else real[:samples]  # (S, T)
        self.maps: list[Tensor] = []  # (K, S, H) each
        self.dead: Tensor | None = None  # share of units, ()
        self.queries = 0  # of a sample
        self.single = False  # whether each map has one head: then all maps belong to this block's attention

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        output = func(*args, **kwargs)
        name = func._schema.name if hasattr(func, "_schema") else ""
        if name in SOFTMAX or (name.startswith(FUSED) and "backward" not in name):
            named = {argument.name: value for argument, value in zip(func._schema.arguments, args)} | dict(kwargs)
            if name in SOFTMAX and type(output) is Tensor:  # not a tensor distributed over processes
                self.keep_softmax(output, named["self"], named["dim"])
            elif name not in SOFTMAX and type(named["query"]) is Tensor:
                self.keep_fused(named)
        elif name in ACTIVATIONS and type(output) is Tensor:
            self.keep_units(output)
        return output

    def keep_units(self, output: Tensor) -> None:
        """Keep the share of units of (B, T, F) or (B T, F) that are dead for all tokens of a few samples."""
        if self.dead is not None or output.ndim not in (2, 3) or output.shape[:-1].numel() != self.batch * self.tokens:
            return
        units = output.detach().reshape(self.batch, self.tokens, -1)[: self.samples]
        largest = torch.maximum(units.amax((0, 1)), -units.amin((0, 1)))  # (F,)
        self.dead = (largest <= ZERO * largest.amax()).float().mean()

    def keep_softmax(self, weights: Tensor, scores: Tensor, dim: int) -> None:
        """Keep the weights of a softmax: (B, H, T, T), (B H, T, T) or, for one head, (B, T, T)."""
        if weights.ndim not in (3, 4) or dim not in (-1, weights.ndim - 1) or weights.shape[-2:] != (self.tokens,) * 2:
            return
        if not self.batch or len(weights) % self.batch or (weights.ndim == 4 and len(weights) != self.batch):
            return
        single = weights.ndim == 3 and len(weights) == self.batch
        if self.maps and not (single and self.single):
            return
        self.single = single
        pair = [x.detach().reshape(self.batch, -1, *x.shape[-2:])[: self.samples] for x in (weights, scores)]
        rows = chosen_queries(self.samples, pair[0].shape[1], self.tokens, weights.device)
        pair = [x[:, :, rows] if len(rows) < self.tokens else x for x in pair]
        self.keep(pair[0], rows, pair[1])

    def keep_fused(self, arguments: Mapping[str, Any]) -> None:
        """Compute and keep the weights of a few samples and queries. Memory does not grow with the square of the length."""
        query, key = arguments["query"].detach(), arguments["key"].detach()  # (B, H, T, d)
        shapes = query.ndim == 4 and len(query) == self.batch and query.shape[2] == key.shape[2] == self.tokens
        if self.maps or not shapes:
            return
        rows = chosen_queries(self.samples, query.shape[1], self.tokens, query.device)
        scale = arguments.get("scale")
        scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
        bias = arguments.get("attn_mask") if arguments.get("attn_mask") is not None else arguments.get("attn_bias")
        q, k = query[: self.samples], key[: self.samples]
        q = q[:, :, rows] if len(rows) < self.tokens else q  # (S, H, R, d)
        k = k.repeat_interleave(q.shape[1] // k.shape[1], 1) if k.shape[1] != q.shape[1] else k  # (S, H, T, d)
        if q.dtype != torch.float64:
            q, k = q.float(), k.float()
        with torch.no_grad(), torch.autocast(q.device.type, enabled=False):
            scores = q @ k.mT * scale  # (S, H, R, T)
            if bias is not None:
                part = bias.detach().expand(*query.shape[:3], self.tokens)[: self.samples, :, rows]
                scores = scores.masked_fill(~part, -torch.inf) if part.dtype == torch.bool else scores + part
            if arguments.get("is_causal"):
                later = torch.arange(self.tokens, device=q.device) > rows[:, None]
                scores.masked_fill_(later, -torch.inf)
            weights = torch.softmax(scores, -1)
            if bias is not None:  # a row that sees nothing is padding
                weights.masked_fill_(scores.amax(-1, keepdim=True) == -torch.inf, 0.0)
            self.keep(weights, rows, scores, bool(arguments.get("is_causal")))

    def keep(self, weights: Tensor, rows: Tensor, scores: Tensor, causal: bool = False) -> None:
        """Keep the values of weights (S, H, R, T)."""
        with torch.no_grad(), torch.autocast(weights.device.type, enabled=False):
            self.maps.append(weight_values(weights, rows, self.real, scores, causal))
        self.queries = len(rows)

    def values(self) -> Tensor | None:
        """Return the values (K, S, H) of all heads, or None without any map."""
        return torch.cat(self.maps, -1) if self.maps else None
