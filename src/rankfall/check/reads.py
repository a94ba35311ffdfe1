"""Read what single tensors and operations of a pass tell: dead units, variance in a norm, masks, sums over weights, attention by head."""

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rankfall.check.attention import TIMES, UNKNOWN, ScoreScale, rms, summed_axes
from rankfall.streams.branches import PRODUCTS_OF_TWO
from rankfall.streams.record import SAME_STATE, SOFTMAX, tensors_in

RECTIFIERS = {F.relu, F.gelu, F.silu, F.leaky_relu, torch.relu, torch._C._nn.gelu, torch._C._nn.silu, Tensor.relu}
SQUASHERS = {torch.tanh, torch.sigmoid, Tensor.tanh, Tensor.sigmoid}
ZERO = 1e-3  # an output of a rectifier below this share of its largest is zero
SATURATED = 1e-3  # distance from the end of the range of tanh or sigmoid
VIEWS = frozenset({"__get__", "__getitem__"})  # as x.mT and x[..., None]
ONE = 1e-5  # distance from one of a sum of weights, as rounded in float32
FEWEST = 32  # numbers from which on a tensor can look random
MASKED = -9e3  # a smaller score is a mask, which libraries write as -1e4, -1e9 or -inf


@dataclass(frozen=True)
class Units:
    """The units behind one activation function: the share that is zero, or at an end of the range, for all tokens."""

    where: str
    function: str
    dead: float


@dataclass(frozen=True)
class NormRead:
    """One call of a norm: its eps, and the median variance of the rows that it divides by, zero rows left out."""

    where: str
    eps: float
    variance: float


class SoftmaxAxes:
    """Follow what a softmax returns to the sum over its products, in any layout, and note a sum over other axes than the softmax's.

    The axes of a softmax are those along which its numbers sum to one, so they are known behind a transpose, too.
    """

    def __init__(self) -> None:
        self.wrong: list[tuple[str, int]] = []  # module of the softmax, and its axis among those of the weights
        self.weights: dict[Tensor, str] = {}  # module
        self.products: dict[Tensor, tuple[str, Tensor]] = {}  # of weights and values: module and weights

    def see(self, where: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        name = getattr(func, "__name__", "")
        if not isinstance(result, Tensor):
            return
        if func in SOFTMAX and result.dim() > 2:
            self.weights[result] = where
            return
        tensors = [tensor for _, tensor in tensors_in((args, kwargs))]
        if name == "sum" and tensors[0] in self.products:
            product, (source, weights) = tensors[0], self.products[tensors[0]]
            axes = kwargs.get("dim", args[1] if len(args) > 1 else None)
            axes = range(product.dim()) if axes is None else [axes] if isinstance(axes, int) else axes
            # the product may have further axes before those of the weights
            self.compare(source, weights, {axis % product.dim() - product.dim() + weights.dim() for axis in axes})
        for tensor in tensors:
            if tensor not in self.weights:
                continue
            source = self.weights[tensor]
            if (name in SAME_STATE or name in VIEWS) and result.numel() == tensor.numel():
                self.weights[result] = source
            elif name in TIMES and len(tensors) > 1:
                self.products[result] = source, tensor
            elif name in PRODUCTS_OF_TWO and over_pairs(tensor):
                self.compare(source, tensor, summed_axes(func, args, tensor))

    def compare(self, where: str, weights: Tensor, summed: set[int]) -> None:
        softmax_axes = normalised_axes(weights)
        if softmax_axes and not softmax_axes & summed:
            self.wrong.append((where, min(softmax_axes)))


def normalised_axes(weights: Tensor) -> set[int]:
    """Return the axes along which all numbers sum to one."""
    axes = [axis for axis, size in enumerate(weights.shape) if size > 1]
    return {axis for axis in axes if bool(((weights.detach().sum(axis) - 1).abs() < ONE).all())}


def over_pairs(weights: Tensor) -> bool:
    """Return whether two axes behind the first have one size, as those of queries and keys."""
    sizes = [size for size in weights.shape[1:] if size > 1]
    return len(set(sizes)) < len(sizes)


def norm_reads(where: str, eps: float, x: Tensor, centred: bool) -> list[NormRead]:
    """Return the eps and the median variance of a norm over the last axis, or nothing if all rows are zero."""
    rows = x.detach().double()
    variance = (rows.var(-1, unbiased=False) if centred else rows.pow(2).mean(-1)).flatten()
    variance = variance[variance > 0]
    return [NormRead(where, eps, float(variance.median()))] if len(variance) else []


def is_inverse(norm: nn.Module, x: Tensor) -> bool:
    """Return whether the output of a norm halves if its input doubles. A norm leaves it as it is, and a batch norm doubles it."""
    try:
        before, after = norm(x), norm(2 * x)
    except Exception:  # whatever a norm with further arguments raises
        return False
    return isinstance(before, Tensor) and bool(before.any()) and rms(2 * after - before) < 0.1 * rms(before)


def is_triangle(mask: Tensor) -> bool:
    """Return whether a square mask has one triangle of equal numbers that the other one lacks."""
    if mask.dim() < 2 or mask.shape[-2] != mask.shape[-1] or mask.shape[-1] < 3 or not mask.numel():
        return False
    corner, other = mask[..., 0, -1].flatten()[0], mask[..., -1, 0].flatten()[0]
    above = torch.ones(mask.shape[-2:], dtype=torch.bool).triu(1)
    diagonal = mask.diagonal(dim1=-2, dim2=-1).flatten()  # a table of signs has zeros there
    return (
        bool(corner != other)
        and bool((mask[..., above] == corner).all() & (mask[..., above.mT] == other).all())
        and bool((diagonal == corner).all() | (diagonal == other).all())
    )


def units_of(where: str, func: Any, result: Tensor) -> Units:
    """Return the share of units that are dead or saturated for all tokens. result (..., units)"""
    rows, name = result.detach().flatten(0, -2) if result.dim() > 1 else result.detach()[None], func.__name__
    if not rows.numel():  # an expert without tokens
        return Units(where, name, 0.0)
    low = 0.0 if func in (torch.sigmoid, Tensor.sigmoid) else -1.0
    zero = rows.abs() <= ZERO * rows.abs().max()
    dead = zero if func in RECTIFIERS else (rows - low < SATURATED) | (1 - rows < SATURATED)
    return Units(where, name, float(dead.all(0).double().mean()))


def looks_random(x: Tensor) -> bool:
    """Return whether numbers look drawn at random: all differ, and neighbours along no axis resemble each other.

    Tables of sines, slopes, distances and masks repeat numbers or are smooth.
    """
    if x.numel() < FEWEST or x.unique().numel() < x.numel() or not bool(x.isfinite().all()):
        return False
    centred = (x.detach().double() - x.double().mean()) / x.double().std()
    for axis in range(x.dim()):
        if (size := x.shape[axis]) > 1:
            products = centred.narrow(axis, 0, size - 1) * centred.narrow(axis, 1, size - 1)
            if abs(float(products.mean())) > 4 * products.numel() ** -0.5:
                return False
    return True


@dataclass(frozen=True)
class HeadNumbers:
    """The attention weights of one call, by head (H,): means over rows that see at least two tokens."""

    layer: int
    where: str
    entropy: Tensor  # share of the entropy of uniform weights
    largest: Tensor
    first: Tensor  # share of the first token; NaN if keys are no tokens of the stream, as lags
    distance: Tensor  # mean distance in tokens; NaN if keys are no tokens of the stream
    logit: float  # largest score
    inverted: bool  # whether tokens of a sample have weight on later ones alone
    selfless: bool  # whether tokens have weight on earlier ones, and none on themselves
    triangular: bool  # whether no token has weight on a later one, or a score that is not 0 or masked
    zeroed: bool  # whether tokens have weight on later ones, and scores of 0
    scale: ScoreScale


def heads_first(weights: Tensor, axis: int, tokens: int) -> Tensor:
    """Return weights (..., H, T, S) for those that a softmax over `axis` lays out as (B, T, S, H), (T, S, H) or (B, T, H, S)."""
    if weights.shape[-1] == weights.shape[-2]:
        return weights
    rows = weights.movedim(axis, -1)
    first = 0 if rows.dim() == 3 else 1
    apart = rows.shape[-2] != tokens or axis % weights.dim() != weights.dim() - 1
    if not apart or rows.shape[first] != tokens:
        return weights
    rows = rows.movedim(first, -2)
    return rows if first else rows[None]


def heads_of(
    layer: int, where: str, weights: Tensor, scores: Tensor | None, scale: ScoreScale = UNKNOWN
) -> list[HeadNumbers]:
    """Return the numbers of a call's heads; nothing if no row sees two tokens. weights (..., T, S)"""
    weights = weights.detach().double()
    weights = weights.unsqueeze(1) if weights.dim() == 3 else weights.flatten(0, -4) if weights.dim() > 4 else weights
    visible = weights > 0 if scores is None else (scores > MASKED).reshape(weights.shape)
    count = visible.sum(-1)  # (B, H, T)
    rows = (count > 1) & weights.isfinite().all(-1)
    if not bool(rows.any()):
        return []
    keys = torch.arange(weights.shape[-1])
    distances = (torch.arange(weights.shape[-2])[:, None] - keys).abs().to(weights)

    def mean(values: Tensor) -> Tensor:  # (B, H, T) -> (H,)
        return torch.where(rows, values, 0.0).sum((0, 2)) / rows.sum((0, 2)).clamp_min(1)

    entropy = torch.special.entr(weights).sum(-1) / count.clamp_min(2).log()
    logit = float(scores[scores > MASKED].max()) if scores is not None else math.nan
    square = weights.shape[-1] == weights.shape[-2] > 2
    largest, unknown = mean(weights.amax(-1)), torch.full((weights.shape[1],), math.nan)
    distance, first = (mean((weights * distances).sum(-1)), mean(weights[..., 0])) if square else (unknown, unknown)
    before, later = ((part > 0)[:, :, :-1].flatten(1).any(1) for part in (weights.tril(), weights.triu(1)))  # (B,)
    inverted = square and bool((later & ~before).any())
    selfless = square and not bool(weights.diagonal(dim1=-2, dim2=-1)[..., 1:].any()) and bool(weights.tril(-1).any())
    triangular = is_triangular(weights, scores)
    zeroed = triangular and scores is not None and bool(((scores == 0) & (scores.abs() + weights > 0)).triu(1).any())
    means = (mean(entropy), largest, first, distance)
    return [HeadNumbers(layer, where, *means, logit, inverted, selfless, triangular, zeroed, scale)]


def unlike_groups(keys: Tensor, values: Tensor) -> str:
    """Return a sentence on heads (B, H, T, d) that share their keys in other groups than their values, or ''."""
    if not keys.dim() == values.dim() == 4 or keys.shape[1] != values.shape[1]:
        return ""
    groups = [groups_of(x) for x in (keys, values)]
    if groups[0] == groups[1] or any(len(set(group)) == keys.shape[1] for group in groups):
        return ""
    joined = [" | ".join(join_heads(group)) for group in groups]
    return f"heads share keys as {joined[0]}, and values as {joined[1]}"


def groups_of(x: Tensor) -> list[int]:
    """Return, for each head of (B, H, T, d), the first head that is equal to it."""
    heads = x.detach().transpose(0, 1).flatten(1)  # (H, B * T * d)
    return [next(first for first in range(len(heads)) if torch.equal(heads[first], head)) for head in heads]


def join_heads(groups: list[int]) -> list[str]:
    return [",".join(str(head) for head, first in enumerate(groups) if first == key) for key in sorted(set(groups))]


def is_triangular(weights: Tensor, scores: Tensor | None) -> bool:
    """Return whether weights are zero above the diagonal and not below it, or scores are masked or zero there."""
    if weights.shape[-1] != weights.shape[-2] or weights.shape[-1] < 3:
        return False
    parts = [weights, *([] if scores is None else [scores.masked_fill(scores <= MASKED, 0.0)])]
    return any(bool(part.tril(-1).any()) and not bool(part.triu(1).any()) for part in parts)
