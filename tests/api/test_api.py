"""Check the functions that users import: their numbers are those of the rank study, known answers, or computed here by another way."""

import random
import re
import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from rankfall import collapse_law, order_of_contraction, residuals
from rankfall.api.layers import architecture, draw_states, network_of
from rankfall.errors import RankfallError
from rankfall.rank.residual import relative_residual


@pytest.mark.parametrize(
    ("layer", "order"),
    [
        (lambda x: 2 * x, 1.0),
        (lambda x: x - 0.5 * (x - x.mean(1, keepdim=True)), 1.0),
        (lambda x: x.mean(1, True) + (d := x - x.mean(1, True)) * d.norm(dim=(1, 2), keepdim=True), 2.0),
        (lambda x: x + torch.arange(x.shape[1], dtype=x.dtype)[:, None], 0.0),
    ],
)
def test_the_order_of_layers_is_known(layer, order):
    found = order_of_contraction(layer)
    assert found.order == pytest.approx(order, abs=0.01)
    assert found.method == "float64"


def test_a_layer_of_equal_rows_has_no_order():
    found = order_of_contraction(lambda x: x.mean(1, keepdim=True).expand_as(x))
    assert found.order is None
    assert "identical" in found.reason or "nothing above rounding" in found.reason


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_an_attention_function_has_the_order_of_the_component(mask):
    ours = order_of_contraction(normaliser="softmax", mask=mask)
    theirs = order_of_contraction(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=mask == "causal"))
    assert (ours.method, theirs.method) == ("centred", "float64")
    assert theirs.order == pytest.approx(ours.order, abs=0.02)


def test_residuals_of_layers_are_those_of_their_states():
    x, layers = (
        torch.randn(3, 7, 6, generator=torch.Generator().manual_seed(0)).double(),
        [nn.Linear(6, 6) for _ in "ab"],
    )
    curve, state = residuals(layers, x, norm="frobenius"), x
    for number, layer in enumerate([nn.Identity(), *layers]):
        state = layer.double()(state)
        rest = state - state.mean(1, keepdim=True)
        by_hand = (rest.flatten(1).norm(dim=1) / state.flatten(1).norm(dim=1)).mean().item()
        assert curve[number] == pytest.approx(by_hand, rel=1e-12)


def test_functions_and_components_follow_one_law():
    """The blocks of a network as plain functions: wherever float64 resolves it, the law is that of centred propagation."""
    network = network_of(architecture({}, depth=5, width=32, heads=2), 1, 16, 0)
    scale = 3.0  # larger maps, so that float64 resolves three layers
    for block in network.blocks:
        for part in (block.attention.value, block.attention.output, block.attention.query, block.attention.key):
            part.weight.mul_(scale)
    x = draw_states(1, 4, 16, 32, 0)
    states = network.states(x)
    blocks = [lambda x, block=block: block(x.unsqueeze(0))[0] for block in network.blocks]
    found = residuals(blocks, states[0][0])
    assert found == pytest.approx([relative_residual(state).mean().item() for state in states], rel=1e-9)


def test_the_law_of_a_function_is_known():
    """rest -> rest |rest|^2 / |x|^2: the log of the residual is three times as large after each layer, until it is rounding."""

    def cube(x):
        common = x.mean(1, keepdim=True)
        rest = x - common
        return common + 0.01 * rest * (rest.norm(dim=(1, 2), keepdim=True) / common.norm(dim=(1, 2), keepdim=True)) ** 2

    law = collapse_law(cube)
    shown = [p for p in law.exponent if p is not None]
    assert shown == pytest.approx([3.0] * len(shown), abs=0.01)  # what `STEADY` lets through
    assert len(shown) >= 2
    assert law.log10_residual[-1] is None
    assert "float64" in law.reason
    assert "rounding" in str(law)


def test_the_law_of_components_has_no_floor():
    law = collapse_law(normaliser="softmax", depth=10)
    assert law.log10_residual[-1] < -10_000
    steps = [after / before for before, after in zip(law.log10_residual[2:], law.log10_residual[3:])]
    assert all(3.0 < step < 3.5 for step in steps)
    assert collapse_law(normaliser="softmax", residual="add", depth=3).log10_residual[-1] > -1


@pytest.fixture(scope="module")
def bert():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    return transformers.BertModel(transformers.BertConfig(vocab_size=400, **sizes)).eval()


def test_a_model_that_is_an_object_keeps_its_weights(bert, monkeypatch):
    """Whole and uncut, its residuals are those of the hidden states that the library returns."""
    from rankfall.models import subject

    batches, batch_for = [], subject.batch_for
    monkeypatch.setattr(subject, "batch_for", lambda *given: batches.append(batch_for(*given)) or batches[-1])
    curves = residuals(bert, samples=2, length=16, text="random", norm="frobenius")
    with torch.no_grad():
        states = bert.double()(**batches[0].inputs, output_hidden_states=True).hidden_states
    by_hand = [relative_residual(state, "frobenius").mean().item() for state in states]
    assert curves["transformer"] == pytest.approx(by_hand, rel=1e-9)
    assert curves["SAN"][-1] < curves["transformer"][-1]


def test_a_model_has_a_law_without_a_floor(bert):
    law = collapse_law(bert.float(), samples=1, length=16, text="random")
    assert len(law.log10_residual) == 3
    assert law.method == "centred"
    assert law.exponent[-1] == pytest.approx(3.0, abs=0.2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: order_of_contraction(lambda q, k: q), "takes 2 arguments"),
        (lambda: order_of_contraction(nn.Linear(4, 4)), "(states are 8 wide here; width=... says otherwise"),
        (lambda: order_of_contraction(attention="gua"), "unknown attention 'gua'; allowed: delta, "),
        (lambda: order_of_contraction(normalizer="l2"), "did you mean 'normaliser'?"),
        (lambda: residuals(F.scaled_dot_product_attention, width=10, heads=4), "4 heads do not divide the width 10"),
        (lambda: residuals(F.scaled_dot_product_attention, depth=-1), "depth is -1: it must be a whole number"),
        (
            lambda: residuals(nn.Identity(), torch.randn(7, 6)),
            "(samples, tokens, width), at least one of each, not (7, 6)",
        ),
        (lambda: collapse_law(lambda x: x.type(torch.float32)), "casts its input from float64 to float32 inside"),
        (lambda: residuals(lambda x: F.dropout(x, 0.5)), "gives two answers for the same input"),
        (
            lambda: residuals(nn.Sequential(nn.Linear(6, 9), nn.Linear(9, 6)), torch.randn(2, 7, 6)),
            "each child of a Sequential is a layer: to measure it as one layer, give a list of it",
        ),
    ],
)
def test_what_cannot_be_measured_is_one_line(call, message):
    with pytest.raises(RankfallError, match=re.escape(message)) as caught:
        call()
    assert "\n" not in str(caught.value)


def blocks(count=3, dropout=0.1):
    torch.manual_seed(0)
    return [nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=dropout) for _ in range(count)]


def test_a_sequential_is_a_stack_of_its_children():
    layers, x = blocks(), torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(1))
    sequential, plain = nn.Sequential(*layers), residuals(layers, x)
    assert len(plain) == 4 and plain.note == ""
    functions = [lambda x, layer=layer: layer(x) for layer in layers]
    for stack in (sequential, nn.ModuleList(layers), torch.compile(sequential, backend="eager"), functions):
        assert residuals(stack, x) == pytest.approx(plain, rel=1e-12)
    assert residuals([sequential], x)[-1] == pytest.approx(plain[-1], rel=1e-12)


def test_what_is_repeated_is_said():
    (layer,) = blocks(1)
    with pytest.warns(UserWarning, match="TransformerEncoderLayer is applied 6 times, with the same weights"):
        found = residuals(layer, width=16)
    assert len(found) == 7 and "applied 6 times" in repr(found)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(residuals(layer, width=16, depth=2)) == 3


def test_the_callers_modules_and_random_state_are_as_before():
    layers = [*blocks(2), nn.Sequential(nn.Dropout(0.5), nn.Linear(16, 16))]
    seen = []
    layers[0].register_forward_hook(lambda module, given, output: seen.append(module))
    layers[1].eval()
    modes = [[module.training for module in layer.modules()] for layer in layers]
    values = [{key: value.clone() for key, value in layer.state_dict().items()} for layer in layers]
    states = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
    x = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(1))

    def noisy(x):
        torch.manual_seed(3), random.seed(3), np.random.seed(3)
        return x + 0.1 * torch.rand(x.shape, dtype=x.dtype)

    residuals([*layers, lambda x: layers[2](x), noisy], x)
    collapse_law([*layers, noisy], width=16)
    order_of_contraction(layers[0], width=16)
    assert [[module.training for module in layer.modules()] for layer in layers] == modes
    for layer, before in zip(layers, values):
        after = layer.state_dict()
        assert all(torch.equal(after[key], value) and after[key].dtype == value.dtype for key, value in before.items())
    assert all(module is not layers[0] for module in seen) and len(layers[0]._forward_hooks) == 1
    assert torch.equal(torch.get_rng_state(), states[0]) and random.getstate() == states[2]
    assert (np.random.get_state()[1] == states[1]).all()


def test_values_at_the_floor_are_marked():
    found = residuals(F.scaled_dot_product_attention, depth=5)
    assert found.floor[:4] == [False] * 4 and found.floor[5]
    assert "~" in repr(found) and repr(found).startswith("[0.5")
    assert residuals(lambda x: x.mean(1, keepdim=True).expand_as(x), depth=1).floor == [False, True]


def test_what_casts_to_float32_inside_is_computed_in_float64_and_reported():
    def scores(q, k):
        return q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5

    def attention(q, k, v):
        return scores(q, k).softmax(-1, dtype=torch.float32).to(v.dtype) @ v

    plain, cast = order_of_contraction(lambda q, k, v: scores(q, k).softmax(-1) @ v), order_of_contraction(attention)
    assert cast.order == pytest.approx(plain.order, abs=1e-9)
    assert "asks for float32 inside" in cast.reason and plain.reason == ""
    law = collapse_law(attention, depth=2)
    assert law.log10_residual == pytest.approx(collapse_law(F.scaled_dot_product_attention, depth=2).log10_residual)
    assert "asks for float32 inside" in law.reason
    assert "asks for float32 inside" in residuals(attention, depth=2).note
    steps = torch.arange(8.0)  # float32 numbers that do not depend on what is given are no cast
    assert residuals(lambda x: x + steps, depth=1, width=8).note == ""
