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
        self.after1: Map | None = None  # norms of the branches, which a subclass may set
        self.after2: Map | None = None

    def forward(self, x: Tensor, drop: Dropout = no_dropout, earlier: Earlier | None = None) -> Tensor:
        attention, residual = bind_earlier(self.attention, earlier), bind_earlier(self.residual, earlier)
        x = self.add_branch("attention", x, lambda h: attention(h, drop), residual, self.norm1, self.after1, drop)
        if self.mlp is None or self.norm2 is None:
            return x
        mlp_residual = bind_earlier(self.mlp_residual, earlier)
        return self.add_branch("mlp", x, self.mlp, mlp_residual, self.norm2, self.after2, drop)

    def add_branch(
        self, name: str, x: Tensor, function: Map, residual: Residual, norm: Map, after: Map | None, drop: Dropout
    ) -> Tensor:
        """Return the states after one sublayer."""
        pre = self.placement == "pre"
        branch = drop(function(norm(x) if pre else x), f"{self.site}.{name}")
        x = residual(x, branch if after is None else after(branch))
        return x if pre else norm(x)
