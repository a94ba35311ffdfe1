"""The gated attention unit (Hua et al. 2022): one head whose output is gated, token by token and dimension by dimension.

    O = (U * A V) W_o,    U = f(X W_u),    V = f(X W_v),    Z = f(X W_z),    f(x) = x / (1 + e^-x)
    A = normaliser(Q K^T / sqrt(s)),    Q = Z * g_q + b_q,    K = Z * g_k + b_k

U and V have e = `expansion` * D dimensions, the shared Z has s = `key_width`. With the normaliser `relu2`, A = relu(Q K^T)^2 / (n s).

`start`: `own` draws every map from N(0, 1 / fan in) with g = 1 and b = 0, for any `init` of the network. Then the diagonal of Q K^T is
s nu^2 and the rest s mu^2, with mu = E f(x) = .2066 and nu^2 = E f(x)^2 = .3557 for a normal x. So relu^2 weights begin nearly diagonal,
nu^4 / mu^4 = 69 to one for large s and 45 to one at s = 128. `init` leaves the maps to the network's `init`.

Near identical rows, X = 1 x^T + R with |R| = eps, u_i differs between rows by O(eps), and so does u_i * (A V)_i, because (A V)_i is of
order one: the gate passes R on like a skip connection. So the order of contraction is at most 1 for every normaliser, softmax included.
It is exactly 1 if rows of A V agree to O(eps): without mask and position in the scores, or if rows of A sum to one and there is no
sentinel. Otherwise it is 0. Without a sentinel, rows then differ at order one by a factor only, the row sum of A, as in any attention with
one head and no biases: sigma_2 / sigma_1 has order 1, and so has the residual after a norm of single tokens.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from torch import Tensor, nn
from torch.nn.functional import silu

from rankfall.nets.attentions._heads import prepare
from rankfall.nets.masks._mask import Mask, hide
from rankfall.nets.primitives import Dropout, Linear, Sizes, constant, no_dropout

if TYPE_CHECKING:
    from rankfall.nets.positions._base import Position

PROVIDES = ("weights",)
OFFERS = ("queries", "products", "scores", "values", "lengths")
ROWS = "normaliser"
MIXES = "scores"
GATED = True
IGNORES = ("heads", "head_width")
LIMITS = {"key_width": (1, None), "expansion": (1, None)}


class Gau(nn.Module):
    def __init__(
        self,
        sizes: Sizes,
        position: "Position",
        normaliser: Callable[[Tensor], Tensor],
        mask: Mask,
        site: str,
        *,
        key_width: int = 128,
        expansion: int = 2,
        start: Literal["own", "init"] = "own",
    ) -> None:
        super().__init__()
        inner, self.key_width, self.site = expansion * sizes.width, key_width, site

        def linear(size_in: int, size_out: int, role: str) -> Linear:
            deviation = size_in**-0.5 if start == "own" else None
            return Linear(sizes, size_in, size_out, role, bias=False, deviation=deviation)

        self.gate = linear(sizes.width, inner, "gate")
        self.value = linear(sizes.width, inner, "value")
        self.shared = linear(sizes.width, key_width, "shared")
        self.output = linear(inner, sizes.width, "output")
        self.gain = constant(sizes, 2, 1, 1, 1, key_width, value=1.0)  # (K, 2, 1, 1, 1, s): for queries and keys
        self.bias = constant(sizes, 2, 1, 1, 1, key_width, value=0.0)
        self.position, self.normaliser, self.mask = position, normaliser, mask

    @staticmethod
    def sized(sizes: Sizes, *, key_width: int = 128, expansion: int = 2, **_: object) -> Sizes:
        """Return the sizes for position and normaliser: one head with queries of s dimensions and values of e."""
        return replace(sizes, heads=1, head_width=key_width, value_width=expansion * sizes.width)

    def logits(self, x: Tensor) -> Tensor:
        """Return the scores before the normaliser (K, B, 1, T, T): scaled, with position terms, -inf where masked."""
        z = silu(self.shared(x)).unsqueeze(2)  # (K, B, 1, T, s)
        q, k = ((z.unsqueeze(1) * self.gain + self.bias)[:, part] for part in (0, 1))
        q, k = self.position.rotate(*prepare(self.normaliser, q, k))
        return hide(self.position.bias(self.position.products(q, k) * self.key_width**-0.5), self.mask)

    def weights(self, x: Tensor) -> Tensor:
        """Return A (K, B, 1, T, T)."""
        return self.normaliser(self.logits(x))

    def forward(self, x: Tensor, drop: Dropout = no_dropout) -> Tensor:
        weights = drop(self.weights(x), f"{self.site}.weights")
        context = self.position.context(weights, silu(self.value(x)).unsqueeze(2))  # (K, B, 1, T, e)
        return self.output(silu(self.gate(x)) * context[:, :, 0])
