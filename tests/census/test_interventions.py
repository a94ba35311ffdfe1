"""Weights that are multiplied: the residual that follows is that of the formula, and the model is as it was."""

import copy

import pytest
import torch
from torch import Tensor, nn

from rankfall.census.scales import residuals_of_changes
from rankfall.census.types import kept_by_twice_the_layers
from rankfall.rank.residual import relative_residual
from rankfall.streams.examine import examine

WIDTH, TOKENS = 16, 6


class Average(nn.Module):
    """Adds a map of the mean token to each token."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.map(x.mean(1, keepdim=True)).expand_as(x)


class Averages(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Linear(WIDTH, WIDTH, bias=False)
        self.blocks = nn.ModuleList(Average() for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return x


def test_the_residuals_are_those_of_a_model_whose_weights_were_multiplied() -> None:
    x = torch.randn(2, TOKENS, WIDTH, generator=torch.Generator().manual_seed(1))
    examined = examine(Averages(), x)
    (flow,) = examined.flows
    before = copy.deepcopy(examined.model.state_dict())
    with torch.no_grad():
        found = residuals_of_changes(examined, flow)
        for name, factor, entrance in (
            ("layers_0_3", 0.3, 1),
            ("layers_10", 10, 1),
            ("weights_3", 3, 3),
            ("weights_10", 10, 10),
        ):
            model = Averages().double()
            state = entrance * model.embed(x.double())
            for block in model.blocks:
                state = state + factor * block.map(state.mean(1, keepdim=True))  # type: ignore[operator, union-attr]
            assert found[name][-1] == pytest.approx(float(relative_residual(state).mean()), rel=1e-9)
    assert found["layers_10"][0] == pytest.approx(found["weights_10"][0], rel=1e-12)  # whatever the size of the state
    assert all(torch.equal(before[name], value) for name, value in examined.model.state_dict().items())


def test_what_twice_as_many_layers_keep_is_of_the_same_stream() -> None:
    def rows(stream: str, layers: int, residual: float) -> list[dict[str, object]]:
        shared = {"outcome": "measured", "stream": stream, "layers": layers}
        return [shared | {"layer": 0, "residual": 0.8}, shared | {"layer": layers, "residual": residual}]

    row = {"stream": "encoder", "layers": 3, "reasons": ""}
    assert kept_by_twice_the_layers(row, [*rows("decoder", 6, 0.1), *rows("encoder", 6, 0.4)]) == {"kept_depth_2": 0.5}
    for other in (rows("encoder", 4, 0.4), [{"outcome": "not built", "stream": "", "layers": None}]):
        assert "not built with twice as many layers" in kept_by_twice_the_layers(row, other)["reasons"]
