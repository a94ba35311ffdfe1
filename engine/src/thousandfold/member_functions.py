"""Functions of PyTorch that a step of many members cannot call as they are: dropout, embeddings with padding, one-hot rows, distances,
and recurrent layers.

Each call of dropout in a step is a site, numbered in the order of calls.

A mask depends only on (seed, site, step). It comes from Philox, a counter-based generator: the key is the seed's, two words of the counter
hold site and step, and the other two count the elements. Sixteen bits decide an element, so rates are rounded to 1 / 65536.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._decomp import get_decompositions
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

LEVELS = 65536
STREAM = 0x64726F706F7574  # second word of all keys, which keeps these streams apart from others of the same seed
Site = tuple[tuple[int, ...], int]  # shape and threshold


class MemberFunctions(TorchFunctionMode):
    """Replace these functions. `mask(x, site, threshold)` returns the mask of x with the scale of what is kept."""

    def __init__(self, mask: Callable[[Tensor, int, int], Tensor]) -> None:
        super().__init__()
        self.mask, self.sites = mask, 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        if func in DROPS:
            return DROPS[func](self.drop, *args, **kwargs)
        if func in REPLACED:
            return REPLACED[func](*args, **kwargs)
        if func is F.multi_head_attention_forward:
            with self:  # its parts are replaced, too
                return heads_of_attention(*args, **kwargs)
        if func in RECURRENT and isinstance(args[2], tuple | list):  # packed sequences have other arguments
            with self:  # dropout between layers
                return recurrent(RECURRENT[func])(*args, **kwargs)
        return func(*args, **kwargs)

    def drop(self, x: Tensor, rate: float) -> Tensor:
        threshold = min(LEVELS, round(rate * LEVELS))
        if threshold == 0:
            return x
        if threshold == LEVELS:
            return x * 0.0
        self.sites += 1
        return x * self.mask(x, self.sites - 1, threshold)


def dropout(
    drop: Callable[[Tensor, float], Tensor], input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    dropped = drop(input, p) if training else input
    return input.copy_(dropped) if inplace else dropped


def torch_dropout(drop: Callable[[Tensor, float], Tensor], input: Tensor, p: float, train: bool) -> Tensor:
    return dropout(drop, input, p, train)


def attention(
    drop: Callable[[Tensor, float], Tensor],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return scaled dot-product attention, whose weights are dropped like any other tensor."""
    if not dropout_p:
        kwargs: dict[str, Any] = {"is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
        return F.scaled_dot_product_attention(query, key, value, attn_mask, **kwargs)
    if enable_gqa:
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if attn_mask is not None:
        boolean = attn_mask.dtype == torch.bool
        scores = scores.masked_fill(~attn_mask, -math.inf) if boolean else scores + attn_mask
    return drop(scores.softmax(-1), dropout_p) @ value


DROPS: dict[Any, Callable[..., Tensor]] = {
    F.dropout: dropout,
    torch.dropout: torch_dropout,
    F.scaled_dot_product_attention: attention,
}

# PyTorch's function without its first check, which would hand the whole call to the mode again.
heads_of_attention = FunctionType(
    F.multi_head_attention_forward.__code__,
    vars(F) | {"has_torch_function": lambda tensors: False},
    argdefs=F.multi_head_attention_forward.__defaults__,
)


# Recurrent layers are one operation in PyTorch, without a rule for `vmap`. Its own decompositions compute them step by step.
RECURRENT: dict[Any, Any] = {
    torch.lstm: torch.ops.aten.lstm.input,
    torch.gru: torch.ops.aten.gru.input,
    torch.rnn_tanh: torch.ops.aten.rnn_tanh.input,
    torch.rnn_relu: torch.ops.aten.rnn_relu.input,
}


@cache
def recurrent(operation: Any) -> Callable[..., Any]:
    """Return the decomposition of a recurrent layer. That of an LSTM would call a kernel in float32 which no trace has."""
    layers = get_decompositions([operation])[operation]
    by_steps = {"select_one_layer_lstm_function": lambda *args: layers.__globals__["one_layer_lstm"]}
    return FunctionType(layers.__code__, layers.__globals__ | by_steps)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return rows of a table. The row of padding has no gradient, which `vmap` of PyTorch's own function gets wrong."""
    if max_norm is not None or scale_grad_by_freq or sparse:
        return F.embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    rows = F.embedding(input, weight)
    if padding_idx is None:
        return rows
    return torch.where((input == padding_idx % weight.shape[0]).unsqueeze(-1), rows.detach(), rows)


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Return one-hot rows. PyTorch's own function reads the classes to check them, which no trace can."""
    if num_classes <= 0:
        return F.one_hot(input, num_classes)
    return input.new_zeros(*input.shape, num_classes).scatter(-1, input.unsqueeze(-1), 1)


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: Any = None) -> Tensor:
    """Return distances of rows. PyTorch's own function has neither a rule for `vmap` nor a decomposition."""
    return torch.linalg.vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


REPLACED: dict[Any, Callable[..., Tensor]] = {F.embedding: embedding, F.one_hot: one_hot, torch.cdist: cdist}


def scale_of(threshold: int) -> float:
    """Return the factor of kept elements."""
    return LEVELS / (LEVELS - threshold)


def traced_mask(x: Tensor, site: int, threshold: int) -> Tensor:
    """Return a mask that the engine draws."""
    mask: Tensor = torch.ops.thousandfold.dropout_mask(x.detach(), site, threshold, scale_of(threshold))
    return mask


def keys_of(seeds: Sequence[int]) -> np.ndarray:
    """Return the keys (K, 2) of the members' streams, as signed words."""
    return np.array([[seed % 2**64, STREAM] for seed in seeds], np.uint64).view(np.int64)


def drawn_masks(seeds: Sequence[int], sites: Sequence[Site], step: int, like: Tensor) -> list[Tensor]:
    """Return the masks (K, *shape) of all sites at a step, with the bits of the engine."""
    masks = []
    for site, (shape, threshold) in enumerate(sites):
        size = math.prod(shape)
        counter, keep = np.array([0, 0, site, step], np.uint64), np.empty((len(seeds), size), bool)
        for row, key in zip(keep, keys_of(seeds).view(np.uint64)):
            bits = np.random.Philox(key=key, counter=counter).random_raw(-(-size // 4))  # four elements per word
            np.greater_equal(bits.view(np.uint16)[:size], threshold, out=row)
        mask = torch.from_numpy(keep).to(like.device, like.dtype) * scale_of(threshold)
        masks.append(mask.view(len(seeds), *shape))
    return masks
