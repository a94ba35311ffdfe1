"""Gradients of the last state with respect to the state of each layer, to queries and to keys.

The differentiated function is <V, X_L> for random V with entries from N(0, 1). The norm of its gradient with respect to the row of token
t at layer l, divided by sqrt(D), estimates the row's influence: the Frobenius norm of the Jacobian of X_L with respect to this row, over
sqrt(D). It is 1 if the row passes through and affects nothing else. The gradient of a state is the norm over all rows, relative to that
of the last state.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from rankfall.check.attention import HEADS, SDPA, named_arguments
from rankfall.check.layer import LayerReport
from rankfall.streams.arguments import in_float64
from rankfall.streams.editor import run_through
from rankfall.streams.examine import FAILURES, Examined
from rankfall.streams.flow import Branch, Edit, Edits, Flow

PROBES = 4  # random functions V of which gradients are averaged


def gradients(examined: Examined, flow: Flow, layers: list[LayerReport], probes: int = PROBES) -> str:
    """Fill in the columns of gradients and influence. Return the reason if there are none, else ''."""
    try:
        exits, heads, last = forward(examined, flow)
        measured = differentiate(exits, heads, last, flow, probes)
        for layer, squares in measured["states"].items():
            if squares.dim() == 2:  # a norm of a row of zeros, such as padding, has any gradient
                rows = flow.layout.to_rows(exits[layer].detach())
                measured["states"][layer] = torch.where(rows.any(-1), squares, 0.0)
    except FAILURES as error:
        message = " ".join(str(error).split())[:120]
        if "checkpoint" in message:
            return "gradient checkpointing computes layers again, which cannot be followed: turn it off for a check"
        return f"it cannot be differentiated: {message}"
    tokens, size = flow.layout.to_rows(last).shape[1:]
    places = {"influence_first": 0, "influence_middle": tokens // 2, "influence_last": tokens - 1}
    # squares (S, T), or a scalar if the state has another shape than the last
    for layer, squares in measured["states"].items():
        layer_report = layers[layer]
        layer_report.gradient = float((squares.sum() / last.numel()).sqrt())
        if squares.dim() == 2 and squares.shape[1] == tokens:
            for name, position in places.items():
                setattr(layer_report, name, float((squares[:, position].mean() / size).sqrt()))
    for number, pair in measured["heads"].items():
        layer_report = layers[flow.branches[number].layer]
        layer_report.head_gradients = layer_report.head_gradients or [float(square) for square in pair.amin(0).sqrt()]
    for name, column in (("queries", "query_gradient"), ("keys", "key_gradient")):
        for number, square in measured[name].items():
            layer = flow.branches[number].layer
            before = getattr(layers[layer], column) or 0.0
            setattr(layers[layer], column, (before**2 + float(square / last.numel())) ** 0.5)
    return "" if measured["states"] else "no state depends on another by operations that can be differentiated"


def say_missing(flow: Flow, layers: list[LayerReport]) -> list[str]:
    """Return a note for each column that is empty although gradients are known."""
    known = [layer for layer in layers if layer.gradient is not None]
    notes = []
    attends = any(flow.branches[number].mixes for number in flow.attends.values())
    if known and attends and all(layer.query_gradient is None for layer in layers):
        notes.append("grad q and grad k are left out: queries and keys are no tensors of their own in this pass")
    short = [str(layer.layer) for layer in known if layer.influence_first is None]
    if short:
        notes.append(f"infl is left out of layers {', '.join(short)}, which have other tokens than the last")
    return notes


def input_gradient(examined: Examined, flow: Flow, edit: Edit | None) -> float | None:
    """Return the gradient of the first state in an edited model, or None if it cannot be computed."""
    try:
        exits, _, last = forward(examined, flow, edit)
        squares = differentiate({0: exits[0]} if 0 in exits else {}, {}, last, flow, 2)["states"]
    except FAILURES:
        return None
    return float((squares[0].sum() / last.numel()).sqrt()) if 0 in squares else None


Heads = dict[str, dict[int, Tensor]]


def forward(examined: Examined, flow: Flow, edit: Edit | None = None) -> tuple[dict[int, Tensor], Heads, Tensor]:
    """Run a pass with gradients. Return the tensors that leave each layer, queries and keys by branch, and the last state."""
    heads: Heads = {"queries": {}, "keys": {}}
    entered: list[Tensor] = []

    def enter(tensor: Tensor) -> Tensor:
        entered.append(tensor.detach().clone().requires_grad_())
        return entered[0] * 1

    def add(branch: Branch, state: Tensor, value: Tensor) -> Tensor | None:
        total = edit(branch, state, value) if edit is not None else None
        return total if total is not None else state + value if flow.skips else value

    def score(number: int, pair: list[Tensor]) -> None:
        if len(pair) == 2 and all(tensor.requires_grad for tensor in pair):
            heads["queries"].setdefault(number, pair[0])
            heads["keys"].setdefault(number, pair[1])

    for parameter in examined.model.parameters():
        parameter.requires_grad_(parameter.is_floating_point())
    edits = Edits(edit=add, enter=enter, attend=attend_scored(flow, score), score=score, copies=True)
    passed = run_through(examined.model, examined.arguments, flow, edits, grad=True)
    exits = {layer: tensor for layer, tensor in passed.exits.items() if tensor.requires_grad}
    return exits | dict(enumerate(entered[:1])), heads, passed.states[-1]


def attend_scored(flow: Flow, score: Callable[[int, list[Tensor]], None]) -> Callable[..., Any]:
    """Return an edit of attention that passes its queries and keys to `score`."""

    def attend(number: int, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        mixes = flow.branches[number].mixes
        if func is F.scaled_dot_product_attention and mixes:
            named = named_arguments(SDPA, args, kwargs)
            score(number, [named["query"], named["key"]])
        elif func is F.multi_head_attention_forward and mixes:
            return write_out_attention(number, named_arguments(HEADS, args, kwargs), func, score)
        return in_float64(func, args, kwargs)

    return attend


def differentiate(
    exits: dict[int, Tensor], heads: Heads, last: Tensor, flow: Flow, probes: int
) -> dict[str, dict[int, Tensor]]:
    """Return squared gradients as means over probes: of states by row (S, T), of queries and keys in total, and of both by head (2, H)."""
    targets = {("states", layer): tensor for layer, tensor in exits.items()}
    targets |= {(name, number): tensor for name, tensors in heads.items() for number, tensor in tensors.items()}
    totals: dict[str, dict[int, Tensor]] = {"states": {}, "queries": {}, "keys": {}, "heads": {}}
    generator = torch.Generator().manual_seed(0)
    for _ in range(probes):
        probe = torch.randn(last.shape, generator=generator, dtype=torch.float64).to(last.dtype)
        total, tensors = (last * probe).sum(), list(targets.values())
        computed = dict(zip(targets, torch.autograd.grad(total, tensors, retain_graph=True, allow_unused=True)))
        for (kind, number), gradient in computed.items():
            if gradient is None:
                continue
            squares = gradient.double().pow(2)
            by_row = kind == "states" and gradient.shape == last.shape
            squares = flow.layout.to_rows(squares).sum(-1) if by_row else squares.sum()
            totals[kind][number] = totals[kind].get(number, torch.zeros_like(squares)) + squares / probes
        for number in heads.get("queries", {}):
            pair = sum_by_head(computed["queries", number], computed["keys", number], flow.layout.to_rows(last))
            if pair is not None:
                totals["heads"][number] = totals["heads"].get(number, torch.zeros_like(pair)) + pair / probes
    return totals


def sum_by_head(queries: Tensor | None, keys: Tensor | None, rows: Tensor) -> Tensor | None:
    """Return the squares of queries and keys by head, (2, H); None if their layout is not known.

    Known layouts are (B, H, T, d), (B, T, H, d) and (B * H, T, d). Keys may also be transposed. rows (S, T, D)
    """
    if queries is None or keys is None:
        return None
    axis = 2 if queries.dim() == 4 and queries.shape[1] == rows.shape[1] != queries.shape[2] else 1
    squares = []
    for gradient in (queries, keys):
        if gradient.dim() == 3 and gradient.shape[0] % len(rows) == 0:
            gradient = gradient.unflatten(0, (len(rows), -1))
        if gradient.dim() != 4:
            return None
        squares.append(gradient.double().pow(2).movedim(axis, 0).flatten(1).sum(1))
    if len(squares[0]) % len(squares[1]):
        return None
    return torch.stack([squares[0], squares[1].repeat_interleave(len(squares[0]) // len(squares[1]))])


def write_out_attention(number: int, named: dict[str, Any], func: Any, score: Any) -> Any:
    """Compute multi-head attention with explicit queries and keys, or call PyTorch's function if it uses further options."""
    further = any(named.get(name) is not None for name in ("bias_k", "static_k"))
    if further or named.get("add_zero_attn") or named.get("use_separate_proj_weight"):
        return func(**named)
    unbatched = named["query"].dim() == 2  # one sample, (T, D)
    inputs = [named[name].unsqueeze(1) if unbatched else named[name] for name in SDPA[:3]]  # (T, B, D)
    count, bias = named["num_heads"], named["in_proj_bias"]
    biases = bias.chunk(3) if bias is not None else (None,) * 3
    parts = [F.linear(x, w, b) for x, w, b in zip(inputs, named["in_proj_weight"].chunk(3), biases)]
    q, k, v = (x.unflatten(-1, (count, -1)).permute(1, 2, 0, 3) for x in parts)  # (B, H, T, d)
    score(number, [q, k])
    terms = []
    if (mask := named.get("attn_mask")) is not None:
        terms.append(mask.unflatten(0, (-1, count)) if mask.dim() == 3 else mask)
    if (padding := named.get("key_padding_mask")) is not None:
        terms.append((padding[None] if unbatched else padding)[:, None, None, :])
    zeros = torch.zeros((), dtype=q.dtype)
    terms = [torch.where(term, -torch.inf, zeros) if term.dtype == torch.bool else term for term in terms]
    mask = sum(terms) if terms else None
    y = F.scaled_dot_product_attention(q, k, v, mask).permute(2, 0, 1, 3).flatten(-2)
    y = y.squeeze(1) if unbatched else y
    return F.linear(y, named["out_proj_weight"], named["out_proj_bias"]), None
