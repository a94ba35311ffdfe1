"""Attention weights of any module, from an explicit softmax or from PyTorch's fused functions: by head, and the scale of their scores.

A scale is the product of all numbers that multiply queries, keys and their products, traced operation by operation.
"""

import inspect
import math
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rankfall.check.layer import StreamReport
from rankfall.check.passes import run_pass
from rankfall.streams.arguments import in_float64
from rankfall.streams.branches import PRODUCTS_OF_TWO
from rankfall.streams.examine import Examined
from rankfall.streams.flow import Branch, Flow
from rankfall.streams.record import PRODUCTS, SOFTMAX, tensors_in


def named_arguments(names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    return dict(zip(names, args)) | kwargs


SDPA = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
HEADS = tuple(inspect.signature(F.multi_head_attention_forward).parameters)


def product_scores(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """Return the scores (..., T, S) of `scaled_dot_product_attention`, -inf where they are masked."""
    named = named_arguments(SDPA, args, kwargs)
    q, k = named["query"], named["key"]
    if named.get("enable_gqa") and q.shape[-3] != k.shape[-3]:
        k = k.repeat_interleave(q.shape[-3] // k.shape[-3], -3)
    scale = named.get("scale")
    scores: Tensor = q @ k.transpose(-2, -1) * (q.shape[-1] ** -0.5 if scale is None else scale)
    mask = named.get("attn_mask")
    if named.get("is_causal"):
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    return scores


def masked_scores(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    """Return the scores of an attention, with their mask; None inside `multi_head_attention_forward`."""
    if func is F.multi_head_attention_forward:
        return None
    return product_scores(args, kwargs) if func is F.scaled_dot_product_attention else (*args, *kwargs.values())[0]


def head_weights(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """Return the weights (B, H, T, S) of `multi_head_attention_forward`."""
    named = named_arguments(HEADS, args, kwargs) | {"need_weights": True, "average_attn_weights": False}
    for name in ("attn_mask", "key_padding_mask"):  # a mask in a plain attribute keeps its format
        if isinstance(named.get(name), Tensor) and named[name].is_floating_point():
            named[name] = named[name].to(named["query"])
    weights: Tensor = func(**named)[1]
    return weights


def weights_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Tensor:
    if func is F.scaled_dot_product_attention:
        return product_scores(args, kwargs).softmax(-1)
    if func is F.multi_head_attention_forward:
        return head_weights(func, args, kwargs)
    assert isinstance(result, Tensor)
    return result


@dataclass
class BranchReads:
    """Hold what a branch that mixes tokens reads and returns in a pass."""

    queries: Tensor | None = None  # (B, H, T, d), or with the heads behind the tokens
    keys: Tensor | None = None  # as the queries
    values: Tensor | None = None
    weights: Tensor | None = None  # (B, H, T, T)
    alone: bool = True  # whether all weights of its attention are the identity
    rows: list[Tensor] = field(default_factory=list)  # (..., D): inputs of its norms and linear maps
    value: Tensor | None = None  # (S, T, D)


class AttentionReader:
    """Read queries, keys, values and weights of each branch in a pass. If `alone`, weights become the identity where that is possible."""

    def __init__(self, flow: Flow, tokens: int, alone: bool) -> None:
        self.flow, self.tokens, self.alone = flow, tokens, alone
        self.reads: dict[int, BranchReads] = {}  # by number of branch, of its last attention
        # of every attention: its weights, or its result if it is fused, with the keys and values
        self.pairs: list[tuple[Tensor, Tensor, Tensor]] = []
        self._weights: dict[Tensor, int] = {}  # number of branch

    def attend(self, number: int, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        reads = self.reads.setdefault(number, BranchReads())
        if func is F.scaled_dot_product_attention:
            named = named_arguments(SDPA, args, kwargs)
            reads.queries, reads.keys, reads.values = (named[name] for name in SDPA[:3])
        result = attend_alone(func, args, kwargs) if self.alone else None
        identity = result is not None
        if not identity:
            reads.alone, result = False, in_float64(func, args, kwargs)
        if isinstance(result, Tensor):
            if func is F.scaled_dot_product_attention:
                self.pairs.append((result, named["key"], named["value"]))
            if func in SOFTMAX and identity == self.alone:
                self._weights[result] = number
            reads.weights = None if self.alone else weights_of(func, args, kwargs, result)
        return result

    def score(self, number: int, pair: list[Tensor]) -> None:
        reads = self.reads.setdefault(number, BranchReads())
        reads.queries, reads.keys = pair[0], pair[-1].mT if pair[-1].shape[-1] == self.tokens else pair[-1]

    def compute(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if getattr(func, "__name__", "") in PRODUCTS_OF_TWO and len(args) == 2 and args[0] in self._weights:
            reads = self.reads.setdefault(self._weights[args[0]], BranchReads())
            reads.values = args[1]
            if reads.keys is not None:
                self.pairs.append((args[0], reads.keys, args[1]))
        return in_float64(func, args, kwargs)

    def drop_later(self, branch: Branch) -> None:
        """Drop what was read for branches of later layers: their products of queries and keys were taken for those of another layer."""
        layers = {number: self.flow.branches[number].layer for number in self.reads}
        self.reads = {number: reads for number, reads in self.reads.items() if layers[number] <= branch.layer}


def attend_alone(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of an attention in which every token reads itself alone, or None if it is not over the tokens alone."""
    if func in (F.scaled_dot_product_attention, F.multi_head_attention_forward):
        names = SDPA if func is F.scaled_dot_product_attention else HEADS
        named = named_arguments(names, args, kwargs)
        axis = -2 if names is SDPA or named["query"].dim() == 2 else 0
        size = named["query"].shape[axis]
        if named["key"].shape[axis] != size or named.get("bias_k") is not None:
            return None
        itself = torch.eye(size, dtype=torch.bool)
        named |= {"is_causal": False, "attn_mask": itself if names is SDPA else ~itself}
        return in_float64(func, (), named | ({"key_padding_mask": None} if names is HEADS else {}))
    result = in_float64(func, args, kwargs)
    axis = args[1] if len(args) > 1 else kwargs.get("dim", -1)
    if axis not in (-1, result.dim() - 1) or result.shape[-1] != result.shape[-2]:
        return None
    return torch.eye(result.shape[-1]).to(result).expand_as(result).clone()


def numbers_of(weights: Tensor, tokens: int) -> tuple[float, float, float | None]:
    """Return the entropy of a row in nats, the largest weight of a row and the first token's share: means over rows that sum to one."""
    rows = weights.detach().double().flatten(0, -2)
    rows = rows[rows.isfinite().all(-1) & (rows.sum(-1) > 0.5)]
    entropy = torch.special.entr(rows).sum(-1).mean()
    first = float(rows[:, 0].mean()) if weights.shape[-1] == tokens else None
    return float(entropy), float(rows.amax(-1).mean()), first


def unseen(weights: Tensor, tokens: int) -> float:
    """Return the share of tokens that have zero weight in every row."""
    if weights.shape[-1] != tokens:
        return 0.0
    never = (weights == 0).all(-2)
    return float((never.all(1) if weights.dim() == 4 else never).double().mean())


def attention(examined: Examined, flow: Flow, report: StreamReport) -> str:
    """Fill in the columns of attention weights, for branches that mix tokens. Return the reason if there are none, else ''."""
    layers, tokens = report.layers, report.tokens
    numbers: dict[int, list[tuple[float, float, float | None]]] = {}
    shares: list[float] = []

    def attend(number: int, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = in_float64(func, args, kwargs)
        if flow.branches[number].mixes:
            weights = weights_of(func, args, kwargs, result)
            if weights.shape[-1] > 1 and weights.dim() >= 3:
                numbers.setdefault(flow.branches[number].layer, []).append(numbers_of(weights, tokens))
                shares.append(unseen(weights, tokens))
        return result

    run_pass(examined, flow, attend=attend)
    padding = round(min(shares, default=0.0) * report.samples * tokens)
    if padding and len(numbers) == report.depth:
        unread = f"no token reads {padding} of {report.samples * tokens} tokens, which all numbers count in"
        report.notes.append(f"{unread}. If they are padding, pass an example without")
    for layer, rows in numbers.items():
        layer_report = layers[layer]
        layer_report.entropy = sum(row[0] for row in rows) / len(rows)
        layer_report.largest = sum(row[1] for row in rows) / len(rows)
        firsts = [row[2] for row in rows if row[2] is not None]
        layer_report.first = sum(firsts) / len(firsts) if firsts else None
    if numbers:
        other_rows = [str(layer) for layer in sorted(numbers) if layers[layer].first is None]
        if other_rows:
            left_out = f"on 1st is left out of layers {', '.join(other_rows)}"
            report.notes.append(f"{left_out}, whose rows are not over the {tokens} tokens")
        return ""
    return "what mixes tokens here makes no weights by softmax, or makes them inside a kernel"


TIMES = frozenset({"mul", "__mul__", "__rmul__", "mul_", "__imul__", "multiply"})
OVER = frozenset({"div", "__truediv__", "div_", "__itruediv__", "__div__", "true_divide", "divide"})
NORMS = {"rsqrt", "sqrt", "norm", "vector_norm", "normalize", "layer_norm", "rms_norm", "group_norm", "std", "var"}
EVEN = 0.5  # keys this share of sqrt(d) times as large as queries make up for a scale, as in T5


@dataclass(frozen=True)
class ScoreScale:
    """The numbers that multiply q k between the maps of queries and keys and the softmax: NaN if a norm or a weight does, too."""

    factor: float
    size: int = 0  # of a head; 0: not yet a product
    even: bool = True  # whether queries and keys are about equally large


UNKNOWN = ScoreScale(math.nan)


class ScoreScales:
    """Trace the scales of all tensors that follow from linear maps."""

    def __init__(self) -> None:
        self.known: dict[Tensor, ScoreScale] = {}

    def see(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Derive the scale of an operation's result from those of its arguments."""
        name, tensors = getattr(func, "__name__", ""), [tensor for _, tensor in tensors_in((args, kwargs))]
        scales = [self.known[tensor] for tensor in tensors if tensor in self.known]
        weights = sum(isinstance(tensor, nn.Parameter) for tensor in tensors)
        scale: ScoreScale | None = None
        if func in PRODUCTS or name.startswith("conv") or (name in PRODUCTS_OF_TWO and weights):
            scale = ScoreScale(1.0)
        elif name in PRODUCTS_OF_TWO and len(scales) == 2:
            q, k = tensors[-2:]
            axes = summed_axes(func, args, q) if name == "einsum" else set()
            size = q.shape[axes.pop() if len(axes) == 1 else -1]
            scale = multiply_scales(scales[0], scales[1], rms(q), rms(k), size, kwargs.get("alpha", 1.0))
        elif scales:
            products = [product for product in scales if product.size]
            scale = (products or scales)[0]
            number = single_number(args)
            if name in NORMS or (weights and name in TIMES | OVER) or len(set(products or scales)) > 1:
                scale = ScoreScale(math.nan, scale.size)
            elif number and name in TIMES | OVER:
                factor = scale.factor * number if name in TIMES else scale.factor / number
                scale = ScoreScale(factor, scale.size, scale.even)
        if scale is not None:
            self.known.update({tensor: scale for _, tensor in tensors_in(result)})

    def of_attention(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ScoreScale:
        """Return the scale of the scores of a softmax, or of a fused attention."""
        if func is F.scaled_dot_product_attention:
            named = named_arguments(SDPA, args, kwargs)
            q, k = (named[name] for name in ("query", "key"))
            if q in self.known and k in self.known:
                scale = named.get("scale") or q.shape[-1] ** -0.5
                return multiply_scales(self.known[q], self.known[k], rms(q), rms(k), q.shape[-1], scale)
            return UNKNOWN
        return self.known.get((*args, *kwargs.values())[0], UNKNOWN)


def multiply_scales(queries: ScoreScale, keys: ScoreScale, q: float, k: float, size: int, alpha: float) -> ScoreScale:
    """Return the scale of a product of queries and keys with RMS `q` and `k`, which sums over heads of this size."""
    ratio = max(q, k) / min(q, k) if min(q, k) > 0 else 1.0
    return ScoreScale(queries.factor * keys.factor * alpha, size, ratio < EVEN * size**0.5)


def summed_axes(func: Any, args: tuple[Any, ...], weights: Tensor) -> set[int]:
    """Return the axes of the weights over which a product sums; all axes if the weights are not a factor of it."""
    name, all_axes = getattr(func, "__name__", ""), set(range(weights.dim()))
    if name == "einsum" and isinstance(args[0], str):
        factors = args[1] if isinstance(args[1], tuple | list) else args[1:]
        terms, _, out = args[0].replace(" ", "").partition("->")
        letters = next((term for term, factor in zip(terms.split(","), factors) if factor is weights), "")
        summed = {axis for axis, letter in enumerate(letters) if letter not in out}
        return summed if letters and "." not in letters else all_axes
    if name in PRODUCTS_OF_TWO and len(args) > 1 and (args[0] is weights or args[1] is weights):
        return {weights.dim() - (1 if args[0] is weights else 2)}
    return all_axes


def rms(x: Tensor) -> float:
    return float(x.detach().double().pow(2).mean().sqrt())


def single_number(args: tuple[Any, ...]) -> float | None:
    """Return the number by which an operation multiplies or divides a tensor, or None."""
    for argument in args[::-1]:
        single = isinstance(argument, Tensor) and argument.numel() == 1 and argument.is_floating_point()
        if single or isinstance(argument, int | float):
            return float(argument)
    return None
