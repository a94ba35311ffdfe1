"""View of one attention layer in the identity study, the same for cells and for Hugging Face models.

    attended = sum_h A_h T_h + 1 b^T,     T_h = (E W_V,h + 1 b_V,h^T) H_h

E is what the attention reads, A_h the weights, H_h the head's part of the output map. T_h includes the bias of the values, which is thus
multiplied by the row sums of A_h as in the network, even if rows do not sum to one.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rankfall.rank.powers import exponent_of, least, measurable, shift, unit

KINDS = ("first", "separator", "punctuation", "other")  # kinds of token; `AttentionView.kinds` holds their indices


@dataclass(frozen=True)
class NormView:
    """A norm of states (B, T, D) in a form that can be applied to a part of what it normalises."""

    gain: Tensor  # broadcasts with (B, T, D)
    bias: Tensor
    eps: float
    centred: bool = True  # whether the mean is subtracted; root-mean-square norms do not
    over: int = -1  # the axis of mean and scale: features; -2: tokens

    def __call__(self, x: Tensor) -> Tensor:
        return self.part(x, x) + self.bias

    def part(self, part: Tensor, whole: Tensor) -> Tensor:
        """Return the contribution of `part` to the norm of `whole`, without the bias.

        Parts that sum to `whole` give results that sum to norm(whole) - bias.
        """
        return self.center(part) * self.spread(whole) * self.gain

    def spread(self, whole: Tensor) -> Tensor:
        """Return the number that the norm of `whole` multiplies by, apart from its gain: (B, T, 1), or (B, 1, D) over tokens."""
        return (self.center(whole).square().mean(self.over, keepdim=True) + self.eps).rsqrt()

    def center(self, x: Tensor) -> Tensor:
        return x - x.mean(self.over, keepdim=True) if self.centred else x


@dataclass(frozen=True)
class JoinView:
    """Addition of the attention to the residual stream: state = norm(skip + factor * attended)."""

    skip: Tensor | None  # (B, T, D) the input of the residual connection; None: no residual connection
    factor: float
    norm: NormView | None  # None: no norm on the stream, as in pre-norm blocks

    def __call__(self, attended: Tensor) -> Tensor:
        total = self.factor * attended if self.skip is None else self.skip + self.factor * attended
        return total if self.norm is None else self.norm(total)


@dataclass(frozen=True)
class AttentionView:
    """One layer of one network on a batch of samples, in float64."""

    layer: int  # 1, 2, ...
    inputs: Tensor  # E (B, T, D): what the attention reads, after the norm of a pre-norm block
    weights: Tensor  # A (B, H, T, T)
    values: Tensor  # (B, H, T, d_v): E W_V,h + 1 b_V,h, one for each head also where heads share them
    output: Tensor  # H_h (H, d_v, D)
    bias: Tensor  # (D,) of the output map
    score_width: int  # d_k: width of the queries and keys whose products are the scores
    allowed: Tensor  # (T, T) bool: row i may attend to column j
    join: JoinView | str  # or the reason why it has no such form
    kinds: Tensor  # (B, T): indices into KINDS
    ids: Tensor | None = None  # (B, T) ids of the tokens, None for vectors; -1: a sentinel

    @property
    def heads(self) -> int:
        return self.weights.shape[1]

    @property
    def tokens(self) -> int:
        return self.weights.shape[2]

    def map_values(self) -> Tensor:
        """Return T_h (B, H, T, D): values as they reach the residual stream. It is large; `compact` is often enough."""
        return self.values @ self.output

    def compact(self) -> Tensor:
        """Return T_h in coordinates of its row space (B, H, T, min(d_v, D)), times a power of two.

        Left singular vectors are unchanged; singular values and norms of rows change by that factor. With H_h^T = Q R, T_h = (V_h R^T)
        Q^T, and Q has orthonormal columns.
        """
        return unit(unit(self.values) @ torch.linalg.qr(unit(self.output).transpose(-1, -2)).R.transpose(-1, -2))

    def lost(self) -> Tensor:
        """Return (B, H): True where T_h is zero or beyond the range of its format, so that its rank is meaningless."""
        size = (unit(self.values) @ unit(self.output)).abs().amax((-2, -1))
        size = shift(size, exponent_of(self.values) + exponent_of(self.output))
        return ~(measurable(self.values) & (size >= least(size.dtype)) & size.isfinite())

    def attend(self) -> Tensor:
        """Return the attention's output (B, T, D), computed from the parts."""
        contexts = self.weights @ self.values  # (B, H, T, d_v)
        return torch.einsum("bhtv,hvd->btd", contexts, self.output) + self.bias
