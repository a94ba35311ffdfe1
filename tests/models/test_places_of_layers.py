"""Guards which additions are layers of a stream, and where each layer's state leaves it, in modules that are put together in other ways."""

import own_modules as own
import pytest
import torch
from torch import nn

from rankfall import residuals
from rankfall.rank.residual import relative_residual
from rankfall.streams.examine import examine

WHOLE = "transformer"


def by_hand(states):
    return pytest.approx(
        [relative_residual(state.double()).mean().item() for state in states], rel=1e-6
    )  # rotations are in float32


class Deferred(nn.Module):
    """A layer that returns its branch beside the state, and leaves the sum to the next."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.mixer = own.RMS(own.WIDTH), own.RotaryAttention()

    def forward(self, branch, state=None):
        state = branch if state is None else branch + state
        return self.mixer(self.norm(state)), state


class DeferredNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.layers = nn.Embedding(50, own.WIDTH), nn.ModuleList(Deferred() for _ in range(4))
        self.norm = own.RMS(own.WIDTH)

    def forward(self, tokens):
        branch, state = self.embed(tokens), None
        for layer in self.layers:
            branch, state = layer(branch, state)
        return self.norm(branch + state)


def test_a_sum_that_the_next_layer_makes_is_of_the_layer_that_makes_its_branch():
    torch.manual_seed(0)
    model, states = DeferredNet().double().eval(), []
    for layer in model.layers:
        layer.register_forward_hook(lambda module, given, output: states.append(output[0] + output[1]))
    model(own.tokens())
    (flow,) = examine(model, own.tokens()).flows
    assert flow.layers == tuple(f"layers.{n}" for n in range(4))
    assert [branch.name for branch in flow.branches] == ["mixer"] * 4
    first = model.embed(own.tokens())
    assert residuals(model, own.tokens())[WHOLE] == by_hand([first, *states[:4]])
    assert residuals(model, own.tokens(), blocks=["layers.1", "layers.2"])[WHOLE] == by_hand(states[:3])
    assert residuals(model, own.tokens(), blocks=["layers.3"])[WHOLE] == by_hand(states[2:4])
