"""Of normalised networks (Loshchilov et al. 2024, nGPT): N(X + g * (N(F(X)) - X)), with N(x) = x / sqrt(mean(x^2)) of each token.

A step on the sphere towards what the sublayer made; g is learned for each feature. There it takes the place of norms (`norm: none`).
Published states have length 1, these have mean square 1, which is a scale of the maps that read them. Queries and keys of one length are
the normaliser `qk_norm`. That weights are normed after every step is no part of it.

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
