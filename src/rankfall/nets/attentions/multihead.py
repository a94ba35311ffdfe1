"""Multi-head attention whose parts can be called separately: logits, weights, each head's value and output maps.

    SA(X) = sum_h P_h X W_h + 1 b^T,   P_h = normaliser(logits_h),   W_h = W_V,h W_O,h,   b = sum_h b_V,h W_O,h + b_O

The bias b_V,h stays outside P_h only where rows of P_h sum to one; `mix` therefore carries it through P_h, as a
network does, and `maps` returns W_h and the two biases separately. What a position adds to a head's context (`positions/shaw.py`) is in
`contexts` and `mix`, and in none of the W_h; such a position says BREAKS.
"""

from torch import Tensor

from rankfall.nets.attentions._heads import Heads

PROVIDES = ("weights", "heads", "values")
OFFERS = ("queries", "products", "scores", "values", "lengths")
ROWS = "normaliser"
MIXES = "scores"


class Multihead(Heads):
    def maps(self) -> tuple[Tensor, Tensor, Tensor]:
        """W_h (K, H, D, D), what head h adds through its value bias b_V,h W_O,h (K, H, D), and the output bias (K, D)."""
        members, width = self.value.weight.shape[:2]
        shape = (members, -1, self.heads, self.head_width)
        value = self.value.weight.view(shape).transpose(1, 2)  # (K, H, D, d)
        output = self.output.weight.view(members, self.heads, self.head_width, width)
        assert self.value.bias is not None and self.output.bias is not None
        value_bias = self.value.bias.view(shape).transpose(1, 2)  # (K, H, 1, d)
        return value @ output, (value_bias @ output).squeeze(2), self.output.bias.squeeze(1)
