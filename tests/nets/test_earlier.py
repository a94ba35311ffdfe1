"""Check layers that read the outputs of earlier ones against loops over layers: first values, means and attention over depth."""

from typing import Any

import pytest
import torch
from helpers import each_network
from one_layer import network, states
from torch import Tensor

KINDS: dict[str, dict[str, Any]] = {
    "value residual": {"attention": "value_residual", "residual": "add"},
    "learned outputs": {"attention": {"name": "value_residual", "where": "outputs", "learned": True}, "mask": "causal"},
    "dense": {"block": "dense", "residual": "add", "norm": "layer", "mlp": "gelu"},
    "dense mean": {"block": {"name": "dense", "start": "mean"}},
    "attentive": {"residual": "attentive", "norm": "rms", "norm_placement": "pre", "mlp": "gelu"},
}


@pytest.mark.parametrize("where", ["values", "outputs"])
@pytest.mark.parametrize("learned", [False, True])
def test_values_of_the_first_layer_are_kept_in_mind(where: str, learned: bool) -> None:
    attention = {"name": "value_residual", "where": where, "share": 0.3, "learned": learned}
    made, x = network(attention=attention, depth=3, heads=3, residual="add"), states(5)
    by_layer, first = list(made.layers(x)), None
    for number, block in enumerate(made.blocks):
        layer = block.attention
        values, weights = layer.split(layer.value(x)), layer.weights(x)
        first = values if first is None else first
        share = 0.3 if number == 0 or not learned else layer.share  # (K, 1, 1, 1, 1)
        mixed = share * (first - values)
        context = weights @ (values + mixed) if where == "values" else weights @ values + mixed
        x = x + layer.output(context.transpose(2, 3).flatten(-2))
        torch.testing.assert_close(by_layer[number + 1], x, rtol=1e-11, atol=1e-11)
    assert len(by_layer) == 4
    assert sum("share" in name for name, _ in made.named_parameters()) == (2 if learned else 0)


@pytest.mark.parametrize("start", ["last", "mean"])
def test_dense_connections_are_means_over_layers(start: str) -> None:
    made = network(block={"name": "dense", "start": start}, residual="add", mlp="gelu", depth=3)
    got, x = list(made.layers(states(4))), states(4)
    outputs = [x]
    for number, block in enumerate(made.blocks):
        y = x + block.attention(x)
        outputs.append(y + block.mlp(y))
        x = torch.zeros_like(x)
        for i, output in enumerate(outputs):
            begin = float(i == len(outputs) - 1) if start == "last" else 1 / len(outputs)
            x = x + (begin + block.shares[:, i]).view(-1, 1, 1, 1) * output
        torch.testing.assert_close(got[number + 1], x, rtol=1e-11, atol=1e-11)
    assert [block.shares.shape[1] for block in made.blocks] == [2, 3, 4]


def test_attention_over_layers_is_a_softmax_of_all_that_was_made() -> None:
    made = network(residual="attentive", norm="rms", norm_placement="pre", mlp="gelu", depth=2)
    got, x = list(made.layers(states(4))), states(4)
    outputs = [x]

    def mean(query: Tensor) -> Tensor:
        rows = torch.zeros_like(x)
        for k, b, t in torch.cartesian_prod(*map(torch.arange, x.shape[:3])).tolist():
            vectors = [output[k, b, t] for output in outputs]
            scores = torch.stack([v @ query[k].flatten() / v.square().mean().sqrt() for v in vectors]).softmax(0)
            rows[k, b, t] = sum(a * v for a, v in zip(scores, vectors))
        return rows

    for number, block in enumerate(made.blocks):
        outputs.append(block.attention(block.norm1(x)))
        x = mean(block.residual.query)
        outputs.append(block.mlp(block.norm2(x)))
        x = mean(block.mlp_residual.query)
        torch.testing.assert_close(got[number + 1], x, rtol=1e-9, atol=1e-9)
    for block in made.blocks:
        block.residual.query.zero_(), block.mlp_residual.query.zero_()
    list(made.layers(states(4)))
    first = made.blocks[0].residual(states(4), states(4).flip(0), earlier={})
    torch.testing.assert_close(first, (states(4) + states(4).flip(0)) / 2)


@pytest.mark.parametrize("name", KINDS)
def test_a_pass_leaves_nothing_for_the_next_and_members_stay_apart(name: str) -> None:
    made, x = network(depth=3, **KINDS[name]), states(5)
    assert made.remembers
    once = made.run(x)
    made.run(3 * x)
    assert torch.equal(made.run(x), once)
    for member, alone in enumerate(each_network(made)):
        sample = (slice(member, member + 1), slice(1, 2))
        torch.testing.assert_close(alone.run(x[sample]), once[sample], rtol=1e-12, atol=1e-12)
