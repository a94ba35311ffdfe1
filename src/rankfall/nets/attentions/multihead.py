"""Multi-head attention whose parts can be called separately: logits, weights, each head's value and output maps.

    SA(X) = sum_h P_h X W_h + 1 b^T,   P_h = normaliser(logits_h),   W_h = W_V,h W_O,h,   b = sum_h b_V,h W_O,h + b_O

The bias b_V,h stays outside P_h only if rows of P_h sum to one. Therefore `mix` carries it through P_h, as a network does, and `maps`
returns W_h and the two biases separately. A position's term in a head's context (`positions/shaw.py`) is part of `contexts` and `mix`, but
not of W_h; such a position declares BREAKS.
"""

from torch import Tensor

from rankfall.nets.attentions._heads import Heads

PROVIDES = ("weights", "heads", "values")
OFFERS = ("queries", "products", "scores", "values", "lengths")
ROWS = "normaliser"
MIXES = "scores"


class Multihead(Heads):
    def maps(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return W_h (K, H, D, D), the value bias b_V,h W_O,h of each head (K, H, D), and the output bias (K, D)."""
        members, width = self.value.weight.shape[:2]
        shape = (members, -1, self.heads, self.head_width)
        value = self.value.weight.view(shape).transpose(1, 2)  # (K, H, D, d)
        output = self.output.weight.view(members, self.heads, self.head_width, width)
        assert self.value.bias is not None and self.output.bias is not None
        value_bias = self.value.bias.view(shape).transpose(1, 2)  # (K, H, 1, d)
        return value @ output, (value_bias @ output).squeeze(2), self.output.bias.squeeze(1)
