"""A block of attention and an optional MLP, each with its residual and norm.

post:  X <- norm1(residual(X, SA(X)));   X <- norm2(mlp_residual(X, MLP(X)))
pre:   X <- residual(X, SA(norm1(X)));   X <- mlp_residual(X, MLP(norm2(X)))
"""

from collections.abc import Callable

from torch import Tensor, nn

from rankfall.nets.primitives import Dropout, Earlier, bind_earlier, no_dropout

Mixer = Callable[..., Tensor]  # an attention: states (K, B, T, D) and dropout to states
Residual = Callable[[Tensor, Tensor], Tensor]
Map = Callable[[Tensor], Tensor]


class Attention(nn.Module):
    def __init__(
        self,
        attention: Mixer,
        mlp: Map | None,
        residual: Residual,
        mlp_residual: Residual,
        norm1: Map,
        norm2: Map | None,
        placement: str,
        site: str,
    ) -> None:
        super().__init__()
        self.attention, self.mlp, self.placement, self.site = attention, mlp, placement, site
        self.residual, self.mlp_residual, self.norm1, self.norm2 = residual, mlp_residual, norm1, norm2

    def forward(self, x: Tensor, drop: Dropout = no_dropout, earlier: Earlier | None = None) -> Tensor:
        attention, residual = bind_earlier(self.attention, earlier), bind_earlier(self.residual, earlier)
        if self.placement == "pre":
            x = residual(x, drop(attention(self.norm1(x), drop), f"{self.site}.attention"))
            if self.mlp is not None and self.norm2 is not None:
                x = bind_earlier(self.mlp_residual, earlier)(x, drop(self.mlp(self.norm2(x)), f"{self.site}.mlp"))
            return x
        x = self.norm1(residual(x, drop(attention(x, drop), f"{self.site}.attention")))
        if self.mlp is not None and self.norm2 is not None:
            x = self.norm2(bind_earlier(self.mlp_residual, earlier)(x, drop(self.mlp(x), f"{self.site}.mlp")))
        return x
