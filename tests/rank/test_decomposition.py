"""Check the path decomposition against the forward pass, and against listing every path one by one."""

from functools import partial
from itertools import product
from typing import Any

import pytest
import torch
from helpers import by_member, data_of, network_of

from rankfall.errors import RankfallError
from rankfall.measure.context import Context
from rankfall.nets.network import Network
from rankfall.rank.decomposition.measure import decomposition, path_terms

network = partial(network_of, noise=0.6, norm="none", depth=3, heads=3, width=6)
INPUTS = torch.randint(7, (2, 4, 5), generator=torch.Generator().manual_seed(1))


def listed(made: Network, inputs: torch.Tensor) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Every path multiplied out, P_path X W_path, added up by length; and the biases, layer by layer on from where they enter."""
    states, depth = made.states(inputs), len(made.blocks)
    weights = [block.attention.weights(x) for block, x in zip(made.blocks, states)]  # (K, B, H, T, T)
    maps = [block.attention.maps() for block in made.blocks]
    factors = [(float(b.residual(1.0, 0.0)), float(b.residual(0.0, 1.0))) for b in made.blocks]

    def along(x: torch.Tensor, layer: int, head: int | None) -> torch.Tensor:
        keep, take = factors[layer]
        if head is None:
            return keep * x
        return take * weights[layer][:, :, head] @ x @ maps[layer][0][:, head].unsqueeze(1)

    terms = [torch.zeros_like(states[0]) for _ in range(depth + 1)]
    for path in product([None, 0, 1, 2], repeat=depth):
        x = states[0]
        for layer, head in enumerate(path):
            x = along(x, layer, head)
        terms[sum(head is not None for head in path)] += x
    bias = torch.zeros_like(states[0])
    for start in range(depth):
        _, head_bias, output_bias = maps[start]
        sums = weights[start].sum(-1, keepdim=True)  # (K, B, H, T, 1)
        source = (sums * head_bias[:, None, :, None]).sum(2) + output_bias[:, None, None]
        for path in product([None, 0, 1, 2], repeat=depth - start - 1):
            x = factors[start][1] * source
            for layer, head in enumerate(path, start + 1):
                x = along(x, layer, head)
            bias += x
    return terms, bias


@pytest.mark.parametrize(
    "architecture",
    [
        {"residual": "add"},
        {"residual": "none"},
        {"residual": "scaled"},
        {"residual": "add", "mask": "causal", "normaliser": "l2", "position": "rope"},
        {"residual": "depth_scaled", "norm_placement": "pre"},
    ],
    ids=str,
)
def test_sum_of_listed_paths_is_the_forward_pass(architecture: dict[str, Any]) -> None:
    made = network(**architecture)
    whole = made.states(INPUTS)[-1]
    terms, bias = path_terms(made, INPUTS)
    listed_terms, listed_bias = listed(made, INPUTS)
    torch.testing.assert_close(torch.stack(listed_terms).sum(0) + listed_bias, whole, rtol=1e-10, atol=1e-10)
    for term, expected in zip([*terms, bias], [*listed_terms, listed_bias]):
        torch.testing.assert_close(term, expected, rtol=1e-10, atol=1e-10)
    if architecture["residual"] == "none":
        assert not torch.stack(terms[:-1]).any()  # without skip there are only paths through all layers


def test_rows_add_up() -> None:
    made = network(residual="add")
    rows = by_member(decomposition, Context(made, data_of(INPUTS)))
    for member in range(2):
        mine = [row for row in rows if row["member"] == member]
        assert [row["length"] for row in mine] == [0, 1, 2, 3, None]
        assert sum(row["output_share"] for row in mine) == pytest.approx(1, abs=1e-10)
        assert sum(row["norm_share"] for row in mine) == pytest.approx(1)
        assert all(row["error"] < 1e-10 for row in mine)
        assert len({round(row["loss_without"], 6) for row in mine}) == len(mine)
    outputs = made(INPUTS)
    assert rows[0]["accuracy"] == pytest.approx(float((outputs[0].argmax(-1) == INPUTS[0]).double().mean()))


@pytest.mark.parametrize("architecture", [{"norm": "layer"}, {"mlp": "gelu"}])
def test_refuses_what_is_no_sum(architecture: dict[str, Any]) -> None:
    with pytest.raises(RankfallError, match=r"paths miss the output by \S+ of it"):
        by_member(decomposition, Context(network(**architecture), data_of(INPUTS)))


def test_a_residual_that_no_theorem_speaks_of_is_refused_by_the_sum() -> None:
    made = network(residual="add")
    for block in made.blocks:
        block.residual = lambda x, branch: x.sigmoid() * branch + x
    with pytest.raises(RankfallError, match=r"paths miss the output by \S+ of it"):
        by_member(decomposition, Context(made, data_of(INPUTS)))
