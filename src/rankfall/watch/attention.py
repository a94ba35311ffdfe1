"""Attention weights of any implementation, from PyTorch's operations while a block runs.

A softmax over tokens gives the weights directly. `scaled_dot_product_attention` never shows them, so they are computed again from its
queries and keys. Listening changes nothing: every operation runs with its original arguments. Linear attention, and kernels that
PyTorch does not know, are not seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from rankfall.watch.numbers import choose_dtype, samples_at_once, select_rows, weight_numbers

SOFTMAX = ("aten::_softmax", "aten::_safe_softmax")
FUSED = "aten::_scaled_dot_product"  # flash, efficient, cudnn, ..., of every device


class AttentionListener(TorchDispatchMode):
    """Mode that appends the numbers of each attention map (B, H, T, T) to `found` while it is active."""

    supports_higher_order_operators = True  # flex_attention and the like pass through, unrecorded

    def __init__(self, batch: int, tokens: int, samples: int, real: Tensor | None, device: torch.device) -> None:
        super().__init__()
        self.batch, self.tokens, self.samples, self.real = batch, tokens, samples, real
        self.device = device
        self.found: list[dict[str, Tensor]] = []
        self.single = False  # whether each map has one head: then all maps belong to this block's attention

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        output = func(*args, **kwargs)
        name = func._schema.name if hasattr(func, "_schema") else ""
        if name in SOFTMAX or (name.startswith(FUSED) and "backward" not in name):
            named = {one.name: value for one, value in zip(func._schema.arguments, args)} | dict(kwargs)
            with torch.no_grad(), torch.autocast(self.device.type, enabled=False):
                if name in SOFTMAX and type(output) is Tensor:  # not a tensor distributed over processes
                    self.keep_softmax(output, named["dim"])
                elif name not in SOFTMAX and type(named["query"]) is Tensor:
                    self.keep_fused(named)
        return output

    def keep_softmax(self, weights: Tensor, dim: int) -> None:
        """Keep the weights of a softmax: (B, H, T, T), (B H, T, T) or, for one head, (B, T, T)."""
        if weights.ndim not in (3, 4) or dim not in (-1, weights.ndim - 1) or weights.shape[-2:] != (self.tokens,) * 2:
            return
        if len(weights) % max(self.batch, 1) or not self.batch or (weights.ndim == 4 and len(weights) != self.batch):
            return
        single = weights.ndim == 3 and len(weights) == self.batch
        if self.found and not (single and self.single):
            return
        self.single = single
        weights = weights.detach().reshape(self.batch, -1, self.tokens, self.tokens)
        rows = select_rows(weights.shape[1], self.tokens, weights.device)
        few = samples_at_once(weights.shape[1], len(rows), self.tokens)
        self.keep([one[:, :, rows] for one in weights[: self.samples].split(few)], rows)

    def keep_fused(self, given: Mapping[str, Any]) -> None:
        """Compute and keep the weights of a few samples and rows, a few at a time. Memory does not grow with the square of the length."""
        query, key = given["query"].detach(), given["key"].detach()  # (B, H, T, d)
        if (
            self.found
            or query.ndim != 4
            or len(query) != self.batch
            or not query.shape[2] == key.shape[2] == self.tokens
        ):
            return
        rows = select_rows(query.shape[1], self.tokens, query.device)
        scale = given.get("scale")
        scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
        bias = given.get("attn_mask") if given.get("attn_mask") is not None else given.get("attn_bias")
        shape = (*query.shape[:3], key.shape[2])
        bias = None if bias is None else bias.detach().expand(shape)
        found = []
        samples = range(min(self.samples, self.batch))
        few = samples_at_once(query.shape[1], len(rows), self.tokens)
        for begin in samples[::few]:
            here = slice(begin, min(begin + few, len(samples)))
            q, k = query[here][:, :, rows], key[here]  # (S, H, R, d), (S, H', T, d)
            k = k.repeat_interleave(q.shape[1] // k.shape[1], 1) if k.shape[1] != q.shape[1] else k
            q, k = q.to(choose_dtype(q)), k.to(choose_dtype(k))
            scores = q @ k.mT * scale  # (S, H, R, T)
            if bias is not None:
                part = bias[here][:, :, rows]
                scores = scores.masked_fill(~part, -torch.inf) if part.dtype == torch.bool else scores + part
            if given.get("is_causal"):
                later = torch.arange(self.tokens, device=q.device) > rows[:, None]
                scores = scores.masked_fill(later, -torch.inf)
            found.append(torch.softmax(scores, -1).nan_to_num(0.0))  # a row that sees nothing is padding
        self.keep(found, rows)

    def keep(self, weights: list[Tensor], rows: Tensor) -> None:
        """Keep the numbers of weights, each (S, H, R, T), of consecutive samples."""
        parts = [None] * len(weights) if self.real is None else self.real.split(len(weights[0]))
        each = [weight_numbers(one, rows, here) for one, here in zip(weights, parts)]
        self.found.append({name: torch.cat([one[name] for one in each]) for name in each[0]})

    def mean_over_maps(self) -> dict[str, Tensor] | None:
        """Return the numbers (S,), averaged over the maps of single heads, or None without any map."""
        if not self.found:
            return None
        return {name: torch.stack([one[name] for one in self.found]).mean(0) for name in self.found[0]}
