"""Functions of PyTorch that a step of many members cannot call as they are: dropout, random numbers, embeddings with padding, one-hot rows,
distances, and recurrent layers.

Each call of dropout in a step, and each call that draws normal or uniform numbers, is a site, numbered in the order of calls.

What a site draws depends only on (seed, site, step). It comes from Philox, a counter-based generator: the key is the seed's, two words of
the counter hold site and step, and the other two count the elements. Sixteen bits decide an element of a mask of dropout, so rates are
rounded to 1 / 65536. A program draws such masks itself. Numbers are drawn before its step and are one of its inputs.
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
NORMAL, UNIFORM = -1, -2  # kinds of sites of numbers; the kind of a site of dropout is its threshold
EPS = 2.0**-25  # least exponential number, as in PyTorch: its logarithm is finite
GENERATOR = np.random.Generator(np.random.Philox(0))
START = GENERATOR.bit_generator.state
Site = tuple[tuple[int, ...], int]  # shape and kind
Draw = Callable[[Tensor, int], Tensor]  # (tensor of the shape, kind) -> what the next site draws
DrawAtSite = Callable[[Tensor, int, int], Tensor]  # (tensor of the shape, site, kind) -> what this site draws


class MemberFunctions(TorchFunctionMode):
    """Replace these functions. `draw` returns numbers, or a mask with the scale of what is kept."""

    def __init__(self, draw: DrawAtSite) -> None:
        super().__init__()
        self.draw, self.sites = draw, 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        if func in DROPS:
            return DROPS[func](self.drop, *args, **kwargs)
        if func in RANDOM and kwargs.get("generator") is None and kwargs.get("out") is None:
            named = {name: value for name, value in kwargs.items() if value is not None}
            drawn = RANDOM[func](self.draw_next, *args, **named)
            if drawn is not None:
                return drawn
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
        return x * self.draw_next(x, threshold)

    def draw_next(self, x: Tensor, kind: int) -> Tensor:
        """Return what the next site draws."""
        self.sites += 1
        return self.draw(x, self.sites - 1, kind)


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


def new(kind: int, form: Callable[..., Tensor]) -> Callable[..., Tensor | None]:
    """Return a function that draws a tensor like that of `form` for the same arguments, or None for complex numbers."""

    def function(draw: Draw, *args: Any, **kwargs: Any) -> Tensor | None:
        like = form(*args, **kwargs)
        drawn = None if like.is_complex() else draw(like, kind).to(like.dtype)
        return drawn.requires_grad_() if drawn is not None and like.requires_grad else drawn

    return function


def in_place(kind: int, change: Callable[..., Tensor]) -> Callable[..., Tensor | None]:
    """Return a function that fills a tensor with `change(numbers, *args)`."""

    def function(draw: Draw, x: Tensor, *args: Any, **kwargs: Any) -> Tensor | None:
        if x.is_complex():
            return None
        numbers = change(draw(x, kind), *args, **kwargs).to(x.dtype)
        try:
            return x.copy_(numbers)
        except RuntimeError as error:
            if "vmap" not in str(error):
                raise
            return numbers  # `vmap` writes no member's numbers to a new tensor, such as that of `Normal.rsample`

    return function


def bernoulli(draw: Draw, x: Tensor, p: Any = None) -> Tensor:
    return (draw(x, UNIFORM) < (x if p is None else p)).to(x.dtype)


def normal(draw: Draw, mean: Any, std: Any = 1.0, size: Any = None, **form: Any) -> Tensor:
    """Return normal numbers, through which no gradient flows to mean and deviation."""
    like = mean + 0.0 * std if size is None else torch.empty(size, **form)
    return (draw(like, NORMAL) * std + mean).detach()


RANDOM: dict[Any, Callable[..., Tensor | None]] = {
    torch.randn: new(NORMAL, torch.empty),
    torch.rand: new(UNIFORM, torch.empty),
    torch.randn_like: new(NORMAL, torch.empty_like),
    torch.rand_like: new(UNIFORM, torch.empty_like),
    torch.normal: normal,
    torch.bernoulli: bernoulli,
    Tensor.bernoulli: bernoulli,
    Tensor.bernoulli_: in_place(UNIFORM, lambda u, p=0.5: u < p),
    Tensor.normal_: in_place(NORMAL, lambda z, mean=0.0, std=1.0: z * std + mean),
    Tensor.uniform_: in_place(UNIFORM, lambda u, low=0.0, to=1.0: u * (to - low) + low),
    Tensor.exponential_: in_place(UNIFORM, lambda u, lambd=1.0: (-u).log1p().clamp(max=-EPS) / -lambd),
}

# PyTorch's functions without their first check, which would hand the whole call to the mode again. The mode is then at work inside.
NO_CHECK: dict[str, Any] = {"has_torch_function": lambda tensors: False}
gradient_of = FunctionType(
    torch.autograd.grad.__code__, vars(torch.autograd) | NO_CHECK, argdefs=torch.autograd.grad.__defaults__
)
heads_of_attention = FunctionType(
    F.multi_head_attention_forward.__code__,
    vars(F) | NO_CHECK,
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


def draw_site(seeds: Sequence[int], site: int, kind: int, shape: Sequence[int], step: int, like: Tensor) -> Tensor:
    """Return what a site draws at a step (K, *shape): numbers, or masks with the bits of the engine."""
    drawn = np.empty((len(seeds), math.prod(shape)), str(like.dtype).removeprefix("torch."))
    for row, key in zip(drawn, keys_of(seeds).view(np.uint64)):
        state = {"counter": np.array([0, 0, site, step], np.uint64), "key": key}
        GENERATOR.bit_generator.state = {**START, "state": state}
        if kind == NORMAL:
            GENERATOR.standard_normal(dtype=row.dtype, out=row)
        elif kind == UNIFORM:
            GENERATOR.random(dtype=row.dtype, out=row)
        else:  # four elements for each word
            words = GENERATOR.bit_generator.random_raw(-(-row.size // 4))
            np.greater_equal(words.view(np.uint16)[: row.size], kind, out=row)
    tensor = torch.from_numpy(drawn).to(like.device).view(len(seeds), *shape)
    return tensor if kind < 0 else tensor * scale_of(kind)
