"""`token_identity` and `attribution` of any module: is a state still nearest to its own token, and from which tokens does it come?

    n_ji = ||d e_j^l / d x_i||_F,    c_ji = n_ji / sum_k n_jk

with e_j^l the state of token j after layer l and x_i that of token i before the first layer. The mean of D |u^T J|^2 over m random
orthonormal directions u estimates the square of the norm without bias; with all D of them it is exact. One backward pass serves all
samples. Axes along which states depend on one another are detected by trial and count as tokens; the first axis of the inputs counts as
samples even if it is such an axis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rankfall.api.layers import check_seed, check_whole_numbers
from rankfall.api.models import examine_module, stream_of
from rankfall.check.gradients import forward
from rankfall.errors import RankfallError
from rankfall.identity.jacobian import orthonormal
from rankfall.identity.shares import shares
from rankfall.identity.tokens import DISTANCES, nearest_shares
from rankfall.random_streams import stream as random_stream
from rankfall.streams.arguments import keep_random_state
from rankfall.streams.cuts import states_of
from rankfall.streams.examine import FAILURES, Examined
from rankfall.streams.flow import Flow
from rankfall.streams.reading import tokens_of


@dataclass(frozen=True)
class TokenIdentity:
    """The share of tokens whose state is nearer to their own first state than to those of other tokens of the sample, at layers 0 .. L."""

    cosine: list[float]
    l2: list[float]
    chance: float  # level of a guess: one over the number of tokens

    def __repr__(self) -> str:
        return f"cosine {show_values(self.cosine)}, l2 {show_values(self.l2)}, chance {self.chance:.3g}"


@dataclass(frozen=True)
class Attribution:
    """The shares of the first states' tokens in a state, which sum to one: norms of blocks of the Jacobian."""

    own: list[float | None]  # by layer 0 .. L: the share of a token in its own state, mean over tokens and samples
    shares: Tensor  # (L + 1, S, N, T): share of each of T tokens in the states of N tokens
    tokens: list[int]  # positions of the N tokens
    note: str  # exact, or the number of directions of the estimate

    def __repr__(self) -> str:
        return f"own share {show_values(self.own)} ({self.note})"


def token_identity(given: Any, inputs: Any = None, *, blocks: Any = None, stream: str | None = None) -> TokenIdentity:
    """Return the share of states that are still nearest to their own token's first state.

    `given` is a module and `inputs` an example of its inputs, as for `residuals`. `stream` selects one of several streams. If m
    tokens of a sample have equal first states, a match of one counts 1 / m.
    """
    examined = examine_module(given, inputs, blocks)
    with keep_random_state(), torch.no_grad():
        flow = stream_of(examined, stream)
        states = states_of(examined, flow)  # each (S, T, D)
        first = states[0].double()
        targets = torch.arange(first.shape[1]).expand(first.shape[:2])
        rates = {
            distance: [float(nearest_shares(state.double(), first, targets, distance).mean()) for state in states]
            for distance in DISTANCES
        }
    return TokenIdentity(**rates, chance=1 / tokens_of(flow))


def attribution(
    given: Any,
    inputs: Any = None,
    *,
    blocks: Any = None,
    stream: str | None = None,
    tokens: int = 8,
    directions: int | None = 4,
    seed: int | None = None,
) -> Attribution:
    """Return the shares of tokens in the states of later layers, at `tokens` evenly spaced positions of each sample.

    Norms are estimated without bias from `directions` random directions of a state. `directions=None` computes them exactly, with a
    backward pass for each feature.
    """
    check_whole_numbers(tokens=tokens)
    if directions is not None:
        check_whole_numbers(directions=directions)
    examined = examine_module(given, inputs, blocks)
    with keep_random_state():
        flow = stream_of(examined, stream)
        count = tokens_of(flow)
        places = torch.linspace(0, count - 1, min(tokens, count)).round().long()  # including the first and the last
        rng = random_stream(check_seed(seed), "attribution", "directions")
        try:
            blocks_of_jacobian = contributions(examined, flow, places, directions, rng)
        except FAILURES as error:
            line = " ".join(str(error).split())[:120]
            raise RankfallError(f"{examined.name} cannot be differentiated: {type(error).__name__}: {line}") from error
    own_share = [None if math.isnan(share) else share for share in own_shares(blocks_of_jacobian, places)]
    exact = directions is None or directions >= flow.width
    note = "exact" if exact else f"estimated from {directions} of {flow.width} directions"
    return Attribution(own_share, shares(blocks_of_jacobian), places.tolist(), note)


def show_values(values: list[float] | list[float | None]) -> str:
    return "[" + ", ".join("None" if value is None else f"{value:.3g}" for value in values) + "]"


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
