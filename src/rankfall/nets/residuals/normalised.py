"""The residual of normalised networks (Loshchilov et al. 2024, nGPT): N(X + g * (N(F(X)) - X)), N(x) = x / sqrt(mean(x^2)) of each token.

It is a step on the sphere towards the sublayer's output, with g learned for each feature, and replaces norms (`norm: none`). Published
states have length 1; these have mean square 1, which only scales the maps that read them. The normaliser `qk_norm` gives queries and keys
of equal length. Normalisation of the weights after every step is not included.

`start`: g before training; published is about 1 / L.
"""

from torch import Tensor, nn

from rankfall.nets.primitives import Sizes, constant


class Normalised(nn.Module):
    def __init__(self, sizes: Sizes, *, start: float = 0.05, eps: float = 1e-12) -> None:
        super().__init__()
        self.gain = constant(sizes, 1, 1, sizes.width, value=start)  # g (K, 1, 1, D)
        self.eps = eps

    def forward(self, x: Tensor, branch: Tensor) -> Tensor:
        return self.on_sphere(x + self.gain * (self.on_sphere(branch) - x))

    def on_sphere(self, x: Tensor) -> Tensor:
        return x * (x.square().mean(-1, keepdim=True) + self.eps).rsqrt()
