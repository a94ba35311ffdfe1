"""MLP(x) = relu(x W_1 + b_1) W_2 + b_2."""

from torch.nn import functional

from rankfall.nets.mlps._mlp import Mlp
from rankfall.nets.primitives import Sizes


class Relu(Mlp):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes, functional.relu)
