"""Token identity and attribution for any module: nearest first states, and shares of a Jacobian.

    n_ji = ||d e_j^l / d x_i||_F,    c_ji = n_ji / sum_k n_jk

with e_j^l the state of token j after layer l and x_i that of token i before the first layer. The mean of D |u^T J|^2 over m random
orthonormal directions u estimates the square of the norm without bias; with all D of them it is exact. One backward pass serves all
samples. Axes along which states depend on one another are detected by trial and count as tokens; the first axis of the inputs counts as
samples even if it is such an axis.
"""

import numpy as np
import torch
from torch import Tensor

from rankfall.check.gradients import forward
from rankfall.errors import RankfallError
from rankfall.identity.jacobian import orthonormal
from rankfall.identity.shares import shares
from rankfall.identity.tokens import DISTANCES, nearest_shares
from rankfall.streams.cuts import states_of
from rankfall.streams.examine import Examined
from rankfall.streams.flow import Flow


def token_identity_of(examined: Examined, flow: Flow) -> dict[str, list[float]]:
    """Return the share of tokens whose state is nearest to their own first state, by distance and for layers 0 .. L.

    Candidates are the first states of the same sample.
    """
    states = states_of(examined, flow)  # each (S, T, D)
    first = states[0].double()
    targets = torch.arange(first.shape[1]).expand(first.shape[:2])
    return {
        distance: [float(nearest_shares(state.double(), first, targets, distance).mean()) for state in states]
        for distance in DISTANCES
    }


def contributions(
    examined: Examined, flow: Flow, tokens: Tensor, directions: int | None, rng: np.random.Generator
) -> Tensor:
    """Return norms of the blocks of tokens j (N,): (L + 1, S, N, T), where layer 0 is the first state itself."""
    with torch.enable_grad():
        exits, _, last = forward(examined, flow)
    if 0 not in exits:
        raise RankfallError(
            f"{examined.name}: the start of its stream cannot be replaced, so derivatives with respect to it cannot be computed"
        )
    start = exits[0]
    if start.numel() != last.numel():
        raise RankfallError(f"{examined.name}: the shape of its first state differs from that of the others")
    states = {layer: flow.layout.to_rows(exits.get(layer, last)) for layer in range(1, flow.depth + 1)}
    samples, count, width = states[flow.depth].shape
    # Before the first layer, the block of a token with itself is the identity, of norm sqrt(D), and all others are zero.
    start_norms = torch.zeros(samples, len(tokens), count, dtype=torch.float64)
    start_norms[:, torch.arange(len(tokens)), tokens] = width**0.5
    by_layer = [start_norms]
    for layer in range(1, flow.depth + 1):
        drawn = orthonormal(rng, len(tokens), width if directions is None else min(directions, width), width)
        squares = torch.stack(
            [sum_squared_derivatives(flow, states[layer], start, int(j), u) for j, u in zip(tokens, drawn)], 1
        )
        by_layer.append((squares * (width / drawn.shape[1])).sqrt())
    return torch.stack(by_layer)


def sum_squared_derivatives(flow: Flow, state: Tensor, start: Tensor, token: int, directions: np.ndarray) -> Tensor:
    """Return the sum over directions u (C, D) of |u^T d e_token / d x_i|^2: (S, T)."""
    total = torch.zeros(state.shape[:2], dtype=torch.float64)
    for direction in torch.as_tensor(directions, dtype=state.dtype):
        cotangent = torch.zeros_like(state)
        cotangent[:, token] = direction
        (gradient,) = torch.autograd.grad(state, start, cotangent, retain_graph=True, allow_unused=True)
        if gradient is not None:
            total += flow.layout.to_rows(gradient).double().pow(2).sum(-1)
    return total


def own_shares(norms: Tensor, tokens: Tensor) -> list[float]:
    """Return the mean share of each token in its own state, by layer, from norms (L + 1, S, N, T)."""
    share = shares(norms)
    own_share = share.gather(-1, tokens[:, None].expand(*share.shape[:-1], 1)).squeeze(-1)
    return [float(value) for value in own_share.mean((1, 2))]
