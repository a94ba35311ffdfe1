"""Equal tokens of a sequence computed once, in networks that cannot distinguish them.

Without positions, mask and anything else that tells places apart, tokens of one symbol have the same state after every layer. If symbol j
stands n_j times in the sequence, its copies together have the weight

    n_j e^{b_ij} / sum_k n_k e^{b_ik} = softmax(b_i + log n)_j,

so attention among the different symbols alone, with log n added to the scores, gives each symbol the state that its tokens have. A text of
128 tokens has about 60 different ones; a product with weights takes half as long, one among tokens a fifth.

That holds of parts as they are written here. Code may be edited, and other parts may be anybody's, so `are_states_alike` has the
network itself show it, on one sequence.
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

SHOWN = 8  # paths
ROUNDING = 1e-3  # of the largest number of a state, in float32 through all layers


@dataclass(frozen=True)
class Symbols:
    """The different symbols of one sequence."""

    numbers: Tensor  # (K, 1, U)
    first: Tensor  # (U,): where each stands first
    of_token: Tensor  # (T,): which of them each token is
    log_counts: Tensor  # (U,)

    @staticmethod
    def count_symbols(inputs: Tensor, dtype: torch.dtype) -> "Symbols":
        """`inputs`: one sequence of one member (1, 1, T)."""
        numbers, of_token, counts = inputs[0, 0].unique(return_inverse=True, return_counts=True)
        first = of_token.new_full((len(numbers),), len(of_token))
        first.scatter_reduce_(0, of_token, torch.arange(len(of_token), device=inputs.device), "amin")
        return Symbols(numbers.expand(1, 1, -1), first, of_token, counts.to(dtype).log())

    def weights(self, block: Any, x: Tensor) -> Tensor:
        """Of states (K, B, U, D): (K, B, H, U, U), the weight of all copies of a symbol together."""
        return softmax(block.attention.logits(x) + self.log_counts)


def are_states_alike(network: Network, inputs: Tensor, distinct: np.ndarray) -> bool:
    """Whether the network's states, some of the paths (U, L) and what is read out of them come out with equal tokens computed once as with
    all of them. The inputs (1, B, T) say which symbols there are; the sequence that is looked at has few of them, each at many places."""
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
    """Outputs (K, U*B, T, C) of final states (K, U, B, T, D)."""
    outputs: Tensor = network.head(ends.flatten(1, 2))
    return outputs


def indistinct(network: Network, inputs: Tensor) -> bool:
    """Whether equal tokens of this network have equal states: known of these parts, and not assumed of others."""
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
