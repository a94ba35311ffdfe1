"""States apart: X = 1 x^T + R on the tokens of the sequence, and sentinels, if any, beside them.

A sentinel's row is another vector at any scale, so it has no part in R; it is kept as it is.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rankfall.rank.centred.scaled import Scaled, normal, plain

if TYPE_CHECKING:
    from rankfall.nets.network import Network


@dataclass(frozen=True)
class State:
    common: Tensor  # x (K, B, 1, D)
    rest: Scaled  # R (K, B, T, D); its columns have mean zero
    sentinels: Tensor  # (K, B, S, D)
    tokens: Tensor  # (T,) places of the tokens in the full sequence of S + T
    others: Tensor  # (S,) places of the sentinels

    def full(self) -> Tensor:
        """X (K, B, S + T, D) as an ordinary tensor: exact while R is not far below x."""
        return self.assemble(self.common + self.rest.value(), self.sentinels)

    def assemble(self, tokens: Tensor, sentinels: Tensor) -> Tensor:
        """Rows of tokens and sentinels in their places; (K, B, H, T, d) works as well."""
        if not len(self.others):
            return tokens
        shape = list(tokens.shape)
        shape[-2] = len(self.tokens) + len(self.others)
        x = tokens.new_empty(shape)
        x[..., self.tokens, :] = tokens
        x[..., self.others, :] = sentinels
        return x

    def moved(self, full: Tensor, rest: Scaled) -> "State":
        """The state after a step: the full output, computed as ever, gives x and sentinels; `rest` is the step's own R."""
        common = full[..., self.tokens, :].mean(-2, keepdim=True)
        return replace(self, common=common, rest=centre(rest), sentinels=full[..., self.others, :])


def centre(rest: Scaled) -> Scaled:
    """R with its column means taken off."""
    return normal(rest.unit - rest.unit.mean(-2, keepdim=True), rest.log)


def begin(network: "Network", x: Tensor) -> State:
    """The state of an embedded batch (K, B, S + T, D)."""
    tokens = torch.arange(x.shape[2], device=x.device)
    if network.sentinels is not None:
        tokens = network.sentinels.strip(tokens.view(1, 1, -1, 1)).flatten()
    others = torch.tensor([i for i in range(x.shape[2]) if i not in set(tokens.tolist())], dtype=torch.long)
    content = x[..., tokens, :]
    common = content.mean(-2, keepdim=True)
    return State(common, centre(plain(content - common)), x[..., others, :], tokens, others.to(x.device))


def scaled_to(state: State, log: Tensor) -> State:
    """The same direction of R at another scale, natural log, (K, B) or fewer axes."""
    return replace(state, rest=Scaled(state.rest.unit, log.expand_as(state.rest.log)))
