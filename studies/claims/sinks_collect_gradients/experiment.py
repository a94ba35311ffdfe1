"""Add a number to all scores of the first token in untrained pre-norm networks, and measure the weight and the gradient at that token.

The gradient is that of a random linear function of the last state, at the first token's input of attention over that at others, mean over
layers. Also measured is the gradient that reaches the first token's state through a norm, by the size of the state.
"""

import torch
from torch import Tensor

from rankfall import Context, Evidence, Network, Position
from rankfall import evidence_row as row
from studies.claims.draws import draw
from studies.claims.parts import PRE_NORM, XAVIER
from studies.claims.sinks_collect_gradients.names import CAUSAL, FULL, GRADIENT, NAME, SLOPE, WEIGHT
from studies.claims.untrained import make

COST = {"seconds": 10}
BUILDS = {"init": ["deepnorm"], "mask": ["causal"], "mlp": ["gelu"], "norm": ["rms"], "residual": ["add"]}
ADDED = (0.0, 2.0, 4.0, 6.0, 8.0)
SIZES = (0.0, 0.5, 1.0, 1.5, 2.0)  # log10


class First(Position):
    """Adds a number to the scores of the first key."""

    def __init__(self, added: float) -> None:
        super().__init__()
        self.added = added

    def bias(self, logits: Tensor) -> Tensor:
        first = torch.zeros(logits.shape[-1], dtype=logits.dtype)
        first[0] = self.added
        return logits + first


def sinks_collect_gradients(
    context: Context, *, depth: int = 4, tokens: int = 64, width: int = 32, heads: int = 2, seeds: int = 20
) -> Evidence:
    members = list(range(seeds))
    x = draw(members, 1, tokens, width, name=NAME)
    function = draw(members, 1, tokens, width, name=f"{NAME} function")
    for line, mask in ((CAUSAL, "causal"), (FULL, "none")):
        network = make(
            members, tokens, **PRE_NORM | {"norm": "rms", "mlp": "gelu", "mask": mask, "init": XAVIER}, depth=depth,
            heads=heads, width=width,
        )  # fmt: skip
        for added in ADDED:
            for block in network.blocks:
                block.attention.position = First(added)
            weight, gradient = measure_first(network, x, function)
            for seed in members:
                yield row(NAME, WEIGHT, line, added, seed, float(weight[seed]))
                yield row(NAME, GRADIENT, line, added, seed, float(gradient[seed]))
        if mask == "causal":
            for size in SIZES:
                through = through_norm(network, x, function, 10**size)
                for seed in members:
                    yield row(NAME, SLOPE, line, size, seed, float(through[seed]))


def measure_first(network: Network, x: Tensor, function: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean weight on the first token of all later ones, and log10 of its gradient over the others' (K)."""
    inputs: list[Tensor] = []
    weights = []
    state = x.clone().requires_grad_()
    with torch.enable_grad():
        for block in network.blocks:
            read = block.norm1(state)
            inputs.append(read)
            weights.append(block.attention.weights(read).detach()[..., 1:, 0].mean((1, 2, 3)))
            state = state + block.attention(read)
            state = state + block.mlp(block.norm2(state))
        gradients = torch.autograd.grad((state * function).sum(), inputs)
    ratios = [gradient.norm(dim=-1)[:, 0] for gradient in gradients]  # (K, T) of each layer
    logs = torch.stack([(norms[:, 0] / norms[:, 1:].mean(-1)).log10() for norms in ratios])
    return torch.stack(weights).mean(0), logs.mean(0)


def through_norm(network: Network, x: Tensor, function: Tensor, size: float) -> Tensor:
    """Return log10 of the gradient (K) that the first token's state gets through the norm of one attention."""
    block = network.blocks[0]
    state = x.clone()
    state[:, :, 0] *= size
    state.requires_grad_()
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad((block.attention(block.norm1(state)) * function).sum(), state)
    return gradient[:, 0, 0].norm(dim=-1).log10()
