"""Take one step in pre-norm attention networks whose branches are multiplied by L^-a, and measure what derivatives miss of it.

Every weight moves by the same amount, against the sign of its gradient, as in Adam's first step. The amount changes the last state by a
fifth. Measured is how far each branch's change, at its original state, is from its derivative's prediction, over that change. A lazy branch
follows its derivative. Numbers are means over layers, by depth L, for a = 1 and a = 1/2.
"""

import torch
from torch import Tensor
from torch.func import functional_call, jvp

from rankfall import Context, Evidence, Network
from rankfall import evidence_row as row
from studies.claims.draws import draw
from studies.claims.lazy_branches.names import CURVED
from studies.claims.parts import PRE_NORM
from studies.claims.untrained import make

COST = {"seconds": 15}
BUILDS = {"mask": ["causal"], "norm": ["layer"], "residual": ["add"]}
NAME = "layers_are_lazy_unless_branches_fall_as_depth"
MOVED = "change of a branch's output over its size, by layers"
SCALINGS = {"1 / L": 1.0, "1 / sqrt(L)": 0.5}
CHANGE = 0.2  # of the last state
HALVINGS = 30  # to find the size of the step
Weights = list[dict[str, Tensor]]


def lazy_branches(
    context: Context,
    *,
    layers: list[int] | tuple[int, ...] = (4, 8, 16, 32, 64),
    tokens: int = 12,
    width: int = 32,
    heads: int = 2,
    seeds: int = 5,
) -> Evidence:
    init = {"name": "normal", "deviation": width**-0.5}
    for seed in range(seeds):
        x = draw([seed], 1, tokens, width, name=NAME)
        targets = draw([seed], 1, tokens, width, name=f"{NAME} wanted")
        for line, power in SCALINGS.items():
            for depth in layers:
                network = make(
                    [seed], tokens, **PRE_NORM, mask="causal", init=init, depth=depth, heads=heads, width=width
                )
                curved, moved = step(network, x, targets, depth**-power)
                yield row(NAME, CURVED, line, depth, seed, curved)
                yield row(NAME, MOVED, line, depth, seed, moved)


def step(network: Network, x: Tensor, targets: Tensor, scale: float) -> tuple[float, float]:
    """Take the step. Return the share of a branch's change that its derivative misses, and the change over the branch's size."""
    start = [{name: value.detach() for name, value in named_weights(block)} for block in network.blocks]
    learned: Weights = [{name: value.clone().requires_grad_() for name, value in layer.items()} for layer in start]
    with torch.enable_grad():
        loss = (states(network, learned, x, scale)[-1] - targets).square().sum()
        parameters = [value for layer in learned for value in layer.values()]
        grads = iter(torch.autograd.grad(loss, parameters))
    signs = [{name: -next(grads).sign() for name in layer} for layer in learned]
    before = states(network, start, x, scale)
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        size = (low + high) / 2
        after = states(network, move_weights(start, signs, size), x, scale)[-1]
        far = float((after - before[-1]).norm() / before[-1].norm())
        low, high = (size, high) if far < CHANGE else (low, size)
    missed, changes = [], []
    for block, old, sign, state in zip(network.blocks, start, signs, before, strict=False):
        read = block.norm1(state)

        def branch(
            weights: dict[str, Tensor], attention: torch.nn.Module = block.attention, read: Tensor = read
        ) -> Tensor:
            return functional_call(attention, weights, (read,))  # type: ignore[no-any-return]

        change = {name: size * value for name, value in sign.items()}
        output, along = jvp(branch, (old,), (change,))[:2]
        actual = branch({name: value + change[name] for name, value in old.items()}) - output
        missed.append((actual - along).norm() / actual.norm())
        changes.append(actual.norm() / output.norm())
    return float(torch.stack(missed).mean()), float(torch.stack(changes).mean())


def named_weights(block: torch.nn.Module) -> list[tuple[str, Tensor]]:
    return [(name, value) for name, value in block.attention.named_parameters() if name.endswith("weight")]  # type: ignore[union-attr,operator]


def move_weights(start: Weights, signs: Weights, size: float) -> Weights:
    return [
        {name: value + size * sign[name] for name, value in layer.items()}
        for layer, sign in zip(start, signs, strict=True)
    ]


def states(network: Network, weights: Weights, x: Tensor, scale: float) -> list[Tensor]:
    """Return the inputs of all blocks, and the last state."""
    inputs = [x]
    for block, layer in zip(network.blocks, weights, strict=True):
        inputs.append(inputs[-1] + scale * functional_call(block.attention, layer, (block.norm1(inputs[-1]),)))
    return inputs
