"""One layer of attention as the identity study sees it, the same for networks of ours and for Hugging Face models.

    attended = sum_h A_h T_h + 1 b^T,     T_h = (E W_V,h + 1 b_V,h^T) H_h

E is what the attention reads, A_h the weights, H_h the head's part of the output map. The bias of the values is in T_h: it is multiplied
by the row sums of A_h, as the network does it, also where rows do not sum to one.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rankfall.rank.powers import exponent_of, least, measurable, shift, unit

KINDS = ("first", "separator", "punctuation", "other")  # of a token; the numbers in `AttentionView.kinds`


@dataclass(frozen=True)
class NormView:
    """A norm of states (B, T, D), written out so that it can be applied to a part of what it normalises."""

    gain: Tensor  # broadcasts with (B, T, D)
    bias: Tensor
    eps: float
    centred: bool = True  # takes the mean off; root-mean-square norms do not
    over: int = -1  # the axis of mean and scale: features; -2: tokens

    def __call__(self, x: Tensor) -> Tensor:
        return self.part(x, x) + self.bias

    def part(self, part: Tensor, whole: Tensor) -> Tensor:
        """What `part` adds to the norm of `whole`, bias aside: parts that sum to `whole` give results that sum to norm(whole) - bias."""
        spread = (self._center(whole).square().mean(self.over, keepdim=True) + self.eps).rsqrt()
        return self._center(part) * spread * self.gain

    def _center(self, x: Tensor) -> Tensor:
        return x - x.mean(self.over, keepdim=True) if self.centred else x


@dataclass(frozen=True)
class JoinView:
    """How the attention joins the residual stream: state = norm(skip + factor * attended)."""

    skip: Tensor | None  # (B, T, D), what the residual connection passes on; None: there is none
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
    bias: Tensor  # (D,), of the output map
    score_width: int  # d_k: width of the queries and keys whose products are the scores
    allowed: Tensor  # (T, T) bool: row i may attend to column j
    join: JoinView | str  # or why it has no such form
    kinds: Tensor  # (B, T): indices into KINDS
    ids: Tensor | None = None  # (B, T) numbers of the tokens, where there are any; -1: a token of the network's own
    member: int = 0  # which network of a stack

    @property
    def heads(self) -> int:
        return self.weights.shape[1]

    @property
    def tokens(self) -> int:
        return self.weights.shape[2]

    @property
    def head_width(self) -> int:
        return self.values.shape[3]

    def map_values(self) -> Tensor:
        """T_h (B, H, T, D): values as they reach the residual stream. Large; most things need `compact` only."""
        return self.values @ self.output

    def compact(self) -> Tensor:
        """T_h in coordinates of its row space (B, H, T, min(d_v, D)), times a power of two: singular values and norms of rows but for that
        factor, and left singular vectors.

        With H_h^T = Q R, T_h = (V_h R^T) Q^T, and Q has orthonormal columns.
        """
        return unit(unit(self.values) @ torch.linalg.qr(unit(self.output).transpose(-1, -2)).R.transpose(-1, -2))

    def lost(self) -> Tensor:
        """(B, H): whether T_h is zero, or beyond the range of its format, so that its rank says nothing."""
        size = (unit(self.values) @ unit(self.output)).abs().amax((-2, -1))
        size = shift(size, exponent_of(self.values) + exponent_of(self.output))
        return ~(measurable(self.values) & (size >= least(size.dtype)) & size.isfinite())

    def attend(self) -> Tensor:
        """What the attention returns (B, T, D), computed from the parts."""
        contexts = self.weights @ self.values  # (B, H, T, d_v)
        return torch.einsum("bhtv,hvd->btd", contexts, self.output) + self.bias
