"""Split states: X = 1 x^T + R, the row x that all tokens share and the rest R, with the rows of sentinels kept separately.

The row of a sentinel differs from x by more than R, so it is not part of the split.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rankfall.nets.network import Network
from rankfall.rank.centred.scaled import Scaled, normal, plain


@dataclass(frozen=True)
class State:
    common: Tensor  # x (K, B, 1, D)
    rest: Scaled  # R (K, B, T, D); its columns have mean zero
    sentinels: Tensor  # (K, B, S, D)
    tokens: Tensor  # (T,) positions of the tokens in the full sequence of S + T
    others: Tensor  # (S,) positions of the sentinels

    def full(self) -> Tensor:
        """Return X (K, B, S + T, D) as an ordinary tensor, which is exact unless R is far smaller than x."""
        return self.assemble(self.common + self.rest.value(), self.sentinels)

    def assemble(self, tokens: Tensor, sentinels: Tensor) -> Tensor:
        """Merge rows of tokens and sentinels in the order of the sequence; (K, B, H, T, d) works as well."""
        if not len(self.others):
            return tokens
        shape = list(tokens.shape)
        shape[-2] = len(self.tokens) + len(self.others)
        x = tokens.new_empty(shape)
        x[..., self.tokens, :] = tokens
        x[..., self.others, :] = sentinels
        return x

    def advance(self, full: Tensor, rest: Scaled) -> "State":
        """Return the state after a step: x and the sentinels are those of the full output, from the ordinary computation; R is `rest`."""
        common = full[..., self.tokens, :].mean(-2, keepdim=True)
        return replace(self, common=common, rest=centre(rest), sentinels=full[..., self.others, :])


def member(weight: Tensor) -> Tensor:
    """Reshape (K, in, out) to (K, 1, in, out), to multiply (K, B, T, in)."""
    return weight.unsqueeze(1)


def centre(rest: Scaled) -> Scaled:
    """Return R minus its column means."""
    return normal(rest.unit - rest.unit.mean(-2, keepdim=True), rest.log)


def begin(network: Network, x: Tensor) -> State:
    """Split the state of an embedded batch (K, B, S + T, D)."""
    tokens = torch.arange(x.shape[2], device=x.device)
    if network.sentinels is not None:
        tokens = network.sentinels.strip(tokens.view(1, 1, -1, 1)).flatten()
    others = torch.tensor([i for i in range(x.shape[2]) if i not in set(tokens.tolist())], dtype=torch.long)
    content = x[..., tokens, :]
    common = content.mean(-2, keepdim=True)
    return State(common, centre(plain(content - common)), x[..., others, :], tokens, others.to(x.device))


def rescale(state: State, log: Tensor) -> State:
    """Return the state with R at another scale. `log` is its natural logarithm, (K, B) or with fewer axes."""
    return replace(state, rest=Scaled(state.rest.unit, log.expand_as(state.rest.log)))
