"""`token_identity` and `attribution` of any module: is a state still nearest to its own token, and from which tokens does it come?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rankfall.api.layers import check_seed, check_whole_numbers
from rankfall.api.modules import examine_module, stream_of
from rankfall.errors import RankfallError
from rankfall.streams.arguments import keep_random_state
from rankfall.streams.examine import FAILURES


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
    from rankfall.identity.of_module import token_identity_of

    examined = examine_module(given, inputs, blocks)
    with keep_random_state(), torch.no_grad():
        flow = stream_of(examined, stream)
        identity = token_identity_of(examined, flow)
    return TokenIdentity(identity["cosine"], identity["l2"], 1 / token_count(flow))


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
    from rankfall.identity.of_module import contributions, own_shares
    from rankfall.identity.shares import shares
    from rankfall.random_streams import stream as random_stream

    check_whole_numbers(tokens=tokens)
    if directions is not None:
        check_whole_numbers(directions=directions)
    examined = examine_module(given, inputs, blocks)
    with keep_random_state():
        flow = stream_of(examined, stream)
        count = token_count(flow)
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


def token_count(flow: Any) -> int:
    """Return the number of tokens of a stream's states."""
    from rankfall.streams.reading import tokens_of

    return int(tokens_of(flow))


def show_values(values: list[float] | list[float | None]) -> str:
    return "[" + ", ".join("None" if value is None else f"{value:.3g}" for value in values) + "]"
