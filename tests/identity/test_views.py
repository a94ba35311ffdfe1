"""Guards the view of an attention layer of ours: its parts give what the network computes, in every form of block."""

from typing import Any

import pytest
import torch
from helpers import each_network
from moved_weights import INPUTS, network
from torch import Tensor

from rankfall.identity.cells import cell_views

BLOCKS: list[dict[str, Any]] = [
    {},
    {"norm_placement": "pre"},
    {"norm": "rms", "residual": {"name": "scaled", "scale": 0.3}},
    {"norm": "column", "residual": "depth_scaled"},
    {"norm": "none", "residual": "none", "mask": "causal"},
    {"normaliser": "sigmoid", "sentinels": "bos", "position": "rope"},
]


def attention_of(block: Any, x: Tensor) -> Tensor:
    return block.attention(x if block.placement == "post" else block.norm1(x))


@pytest.mark.parametrize("architecture", BLOCKS, ids=str)
def test_the_parts_give_what_the_layer_computes(architecture: dict[str, Any]) -> None:
    made = network(mlp="none", **architecture)
    states = made.states(INPUTS)
    found = [view for k, one in enumerate(each_network(made)) for view in cell_views(one, INPUTS[k : k + 1])]
    assert [view.layer for view in found] == [1, 2, 1, 2]
    for member, view in zip((0, 0, 1, 1), found):
        attended = attention_of(made.blocks[view.layer - 1], states[view.layer - 1])[member]
        torch.testing.assert_close(view.attend(), attended, rtol=1e-12, atol=1e-12)
        summed = (view.weights @ view.map_values()).sum(1) + view.bias
        torch.testing.assert_close(summed, attended, rtol=1e-12, atol=1e-12)
        assert not isinstance(view.join, str)
        torch.testing.assert_close(view.join(attended), states[view.layer][member], rtol=1e-12, atol=1e-12)
        assert (view.weights[:, :, ~view.allowed] == 0).all()
