"""Norms of the blocks d e_j^l / d x_i of a Jacobian: e_j^l is token j's state after layer l, x_i token i's state before the first layer.

    n_ji = ||d e_j^l / d x_i||_F,    the norm of a whole D x D block                      (Brunner et al. 2020, hidden token attribution)

All blocks come from T * D tangents, each carried through all layers in one pass (`every_block`). The blocks of a few tokens j come from
cotangents, carried back from each layer (`blocks_of`). The D unit vectors give them exactly; m < D orthonormal directions u estimate
them without bias, since the mean of D |u^T J|^2 over directions is ||J||_F^2. The same derivatives also give

    ||d e_j / d x_i diag(x_i)||_F    Jacobian times input (as in GlobEnc)
    |d sum(e_j) / d x_i|             the gradient of the summed features, which public code uses in place of the block

The last is exactly zero after a layer norm whose gains are equal. `blocks_of` detects such layers with a second input and skips the
backward pass.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.func import jvp, vmap

Layers = Callable[[Tensor], Sequence[Tensor]]  # states before the first layer (..., T, D) -> states after layers 1 .. L
Squares = dict[str, Tensor]

JACOBIAN, TIMES_INPUT, SUMMED = "jacobian", "jacobian x input", "summed gradient"
WITHOUT_OUTLIERS = "jacobian without outliers"
MEMORY = 2**28  # approximate limit on the bytes of the tangents of one pass


def every_block(layers: Layers, x: Tensor, memory: int = MEMORY) -> Squares:
    """Return squared norms of all blocks, (L, ..., T, T) with rows j and columns i, for states x (..., T, D)."""
    tokens, width = x.shape[-2:]
    _, states, cost = record_pass(layers, x)
    shape = (len(states), *x.shape[:-2], tokens, tokens)
    totals = {name: x.new_zeros(shape) for name in (JACOBIAN, TIMES_INPUT, SUMMED)}
    del states
    carried = vmap(lambda tangent: jvp(lambda states: tuple(layers(states)), (x,), (tangent,))[1])
    for part in torch.arange(tokens * width, device=x.device).split(max(1, memory // cost)):
        token, feature = part // width, part % width  # (C,)
        tangents = x.new_zeros(len(part), *x.shape)
        tangents[torch.arange(len(part)), ..., token, feature] = 1
        size = x[..., token, feature].square().unsqueeze(-2)  # (..., 1, C)
        for layer, moved in enumerate(carried(tangents)):  # (C, ..., T, D)
            whole = moved.square().sum(-1).movedim(0, -1)  # (..., T, C)
            squares = (whole, whole * size, moved.sum(-1).square().movedim(0, -1))
            for value, of_layers in zip(squares, totals.values()):
                of_layers[layer].index_add_(-1, token, value)
    return totals


def blocks_of(
    layers: Layers,
    x: Tensor,
    tokens: Tensor,
    directions: int | None,
    rng: np.random.Generator,
    outliers: Sequence[Tensor] | None = None,
    memory: int = MEMORY,
) -> Squares:
    """Return squared norms of the blocks of a few tokens j of one sample x (T, D): (M, L, N, T), whose mean over M estimates the square.

    The gradient of summed features is 0 where these are constant.

    `directions`: None for exact blocks, M = 1. `outliers`: for each layer the features (O,) that `jacobian without outliers` leaves out
    of e_j. They are differentiated exactly, and directions are drawn among the others.
    """
    length, width = x.shape
    start, states, cost = record_pass(layers, x)
    outliers_of = outliers or [torch.zeros(0, dtype=torch.long)] * len(states)
    rows: list[tuple[Tensor, ...]] = []
    for state, constant, outlying in zip(states, constant_sums(layers, x, states), outliers_of, strict=True):
        others = torch.tensor(sorted(set(range(width)) - set(outlying.tolist())), dtype=torch.long)
        count = len(others) if directions is None else min(directions, len(others))
        drawn = x.new_zeros(len(tokens), count, width)
        drawn[..., others] = torch.as_tensor(orthonormal(rng, len(tokens), count, len(others))).to(x)
        fixed = torch.cat([torch.eye(width).to(x)[outlying], x.new_ones(int(not constant), width)])
        vectors = torch.cat([drawn, fixed.expand(len(tokens), -1, -1)], 1)  # (N, C, D): drawn, outliers, the sum
        plain = x.new_empty(*vectors.shape[:2], length)
        scaled = torch.empty_like(plain)
        for place, gradient in _carry_back(state, start, tokens, vectors, memory // cost):
            plain.view(-1, length)[place] = gradient.square().sum(-1)
            scaled.view(-1, length)[place] = (gradient * x).square().sum(-1)
        end = count + len(outlying)
        parts = 1 if directions is None else count  # (M, N, T): each part's estimate of the sum over all others
        plain_others, scaled_others = (
            value[:, :count].unflatten(1, (parts, -1)).mean(2).transpose(0, 1) * len(others)
            for value in (plain, scaled)
        )
        summed = plain[:, end:].sum(1).expand_as(plain_others)
        rows.append(
            (
                plain_others + plain[:, count:end].sum(1),
                scaled_others + scaled[:, count:end].sum(1),
                summed,
                plain_others,
            )
        )
    names = (JACOBIAN, TIMES_INPUT, SUMMED, *([] if outliers is None else [WITHOUT_OUTLIERS]))
    return {name: torch.stack(values, 1) for name, values in zip(names, zip(*rows))}


def constant_sums(layers: Layers, x: Tensor, states: Sequence[Tensor]) -> list[bool]:
    """Return, for each layer, whether the sum of every token's features is constant: the same for another input."""
    with torch.no_grad():
        others = layers(x.flip(-1))
    limit = torch.finfo(x.dtype).eps ** 0.5
    constant = []
    for state, other in zip(states, others, strict=True):
        moved = (other - state.detach()).double()  # (T, D)
        size = moved.norm(dim=-1)
        constant.append(
            bool(((moved.sum(-1).abs() <= limit * size) & (size > limit * state.detach().norm(dim=-1))).all())
        )
    return constant


def record_pass(layers: Layers, x: Tensor) -> tuple[Tensor, list[Tensor], int]:
    """Run the layers with gradients.

    Return the input at which gradients are taken, the states with their graph, and the approximate number of bytes that one tangent
    needs: twice what a layer keeps for its gradient.
    """
    kept = 0

    def keep(value: Tensor) -> Tensor:
        nonlocal kept
        kept += value.numel() * value.element_size() if value.requires_grad else 0  # weights do not count
        return value

    start = x.detach().clone()
    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
        states = list(layers(start.requires_grad_()))
    depth = len(states)
    return start, states, 2 * kept // depth + (depth + 1) * x.numel() * x.element_size()


def _carry_back(
    state: Tensor, start: Tensor, tokens: Tensor, vectors: Tensor, step: int
) -> Iterator[tuple[slice, Tensor]]:
    """Yield u^T d e_j / d x (C, T, D) for all vectors u of all tokens j, a chunk at a time."""
    token, flat = tokens.repeat_interleave(vectors.shape[1]), vectors.flatten(0, 1)
    for first in range(0, len(flat), max(1, step)):
        place = slice(first, min(first + max(1, step), len(flat)))
        cotangents = torch.zeros(len(flat[place]), *state.shape, dtype=state.dtype, device=state.device)
        cotangents[torch.arange(len(cotangents)), token[place]] = flat[place]
        (gradient,) = torch.autograd.grad(state, start, cotangents, is_grads_batched=True, retain_graph=True)
        yield place, gradient


def orthonormal(rng: np.random.Generator, sets: int, count: int, width: int) -> np.ndarray:
    """Draw `sets` times `count` orthonormal vectors, uniformly distributed. If `count` equals `width`, return the unit vectors."""
    if count == width:
        return np.tile(np.eye(width), (sets, 1, 1))
    basis, triangle = np.linalg.qr(rng.normal(size=(sets, width, count)))
    signs = np.sign(np.diagonal(triangle, axis1=-2, axis2=-1))[:, None]  # without the signs, QR favours some directions
    return np.swapaxes(basis * signs, -1, -2)
