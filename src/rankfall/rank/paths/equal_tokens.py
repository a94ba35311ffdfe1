"""Equal tokens of a sequence computed once, in networks that cannot distinguish them.

Without positions, masks and other means to distinguish places, tokens of one symbol have the same state after every layer. If symbol j
occurs n_j times in the sequence, its copies together have the weight

    n_j e^{b_ij} / sum_k n_k e^{b_ik} = softmax(b_i + log n)_j,

so attention among the distinct symbols alone, with log n added to the scores, gives each symbol the state of its tokens. A text of 128
tokens has about 60 distinct symbols; a product with weights takes half as long, and one among tokens a fifth.

This holds for the components as they are written here. Code may be edited, and components may be user-written, so `are_states_alike`
tests it on the network itself, on one sequence.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rankfall.nets.attentions.multihead import Multihead
from rankfall.nets.network import Network
from rankfall.nets.normalisers.softmax import softmax
from rankfall.nets.norms.layer import Layer
from rankfall.nets.norms.none import none
from rankfall.nets.norms.rms import Rms
from rankfall.nets.positions._base import Position
from rankfall.rank.paths.ends import path_ends

SHOWN = 8  # paths compared in the test
ROUNDING = 1e-3  # relative to the largest entry of a state, in float32 through all layers


@dataclass(frozen=True)
class Symbols:
    """Distinct symbols of one sequence."""

    numbers: Tensor  # (K, 1, U)
    first: Tensor  # (U,): first position of each
    of_token: Tensor  # (T,): index of each token's symbol
    log_counts: Tensor  # (U,)

    @staticmethod
    def count_symbols(inputs: Tensor, dtype: torch.dtype) -> "Symbols":
        """Count the symbols of `inputs`, one sequence of one member (1, 1, T)."""
        numbers, of_token, counts = inputs[0, 0].unique(return_inverse=True, return_counts=True)
        first = of_token.new_full((len(numbers),), len(of_token))
        first.scatter_reduce_(0, of_token, torch.arange(len(of_token), device=inputs.device), "amin")
        return Symbols(numbers.expand(1, 1, -1), first, of_token, counts.to(dtype).log())

    def weights(self, block: Any, x: Tensor) -> Tensor:
        """Return the weight of all copies of a symbol together, (K, B, H, U, U), for states (K, B, U, D)."""
        return softmax(block.attention.logits(x) + self.log_counts)


def are_states_alike(network: Network, inputs: Tensor, distinct: np.ndarray) -> bool:
    """Check whether states, some of the paths (U, L) and their outputs are the same with equal tokens computed once and with all tokens.

    The inputs (1, B, T) give the symbols. The tested sequence has few of them, each at many positions.
    """
    numbers = inputs[0].unique()
    rng = np.random.default_rng(0)
    some = rng.integers(min(len(numbers), max(2, inputs.shape[2] // 4)), size=inputs.shape[2])
    one = numbers[torch.from_numpy(some).to(numbers.device)].view(1, 1, -1)
    symbols = Symbols.count_symbols(one, next(network.parameters()).dtype)
    full = network.states(one)
    few = distinct[np.linspace(0, len(distinct) - 1, min(len(distinct), SHOWN)).astype(int)]
    pairs = [(x, x[:, :, symbols.first]) for x in full]
    for states in (None, full):
        apart = path_ends(network, network.lift(one), few, states)
        own = None if states is None else [x[:, :, symbols.first] for x in states]
        once = path_ends(network, network.lift(symbols.numbers), few, own, symbols.weights)
        pairs += [(apart, once), (head_of(network, apart), head_of(network, once))]
    return all(is_near(x, y[..., symbols.of_token, :]) for x, y in pairs)


def is_near(x: Tensor, y: Tensor) -> bool:
    return bool((x - y).abs().max() <= ROUNDING * x.abs().max())


def head_of(network: Network, ends: Tensor) -> Tensor:
    """Return outputs (K, U*B, T, C) of final states (K, U, B, T, D)."""
    outputs: Tensor = network.head(ends.flatten(1, 2))
    return outputs


def indistinct(network: Network, inputs: Tensor) -> bool:
    """Check whether equal tokens of this network have equal states. This is known for these components only, and False for all others."""
    return (
        not inputs.is_floating_point()
        and network.sentinels is None
        and type(network.position) is Position
        and tokenwise(network.norm_in)
        and all(
            type(block.attention) is Multihead
            and type(block.attention.position) is Position
            and getattr(block.attention.normaliser, "func", None) is softmax
            and block.attention.mask(inputs.shape[-1], inputs.device) is None
            and block.mlp is None
            and tokenwise(block.norm1)
            for block in network.blocks
        )
    )


def tokenwise(norm: Any) -> bool:
    return isinstance(norm, Layer | Rms) or norm is none or (isinstance(norm, partial) and norm.func is none)
