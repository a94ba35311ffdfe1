"""Guards the anatomy of any module: streams, layers and branches of five kinds of modules, what is left behind, what is refused."""

from __future__ import annotations

import copy
import random

import numpy as np
import own_modules as own
import pytest
import stream_kinds as kinds
import torch
from torch import nn

from rankfall import residuals
from rankfall.check.report import check
from rankfall.errors import RankfallError
from rankfall.rank.residual import relative_residual
from rankfall.streams.examine import examine
from rankfall.streams.flow import MIXES, TOKENWISE

WHOLE = "transformer"


@pytest.mark.parametrize("kind", own.KINDS)
def test_layers_and_branches_of_every_kind(kind):
    make, inputs, layers, mixes, plain, causal = own.KINDS[kind]
    torch.manual_seed(0)
    (flow,) = examine(make(), inputs).flows
    branches = [branch.kind for branch in flow.branches]
    assert (flow.depth, flow.width, flow.causal) == (layers, own.D, causal)
    assert [branches.count(kind) for kind in (MIXES, TOKENWISE)] == [mixes, plain]
    assert [name.rpartition(".")[2] for name in flow.layers] == [str(number) for number in range(layers)]
    measured = residuals(make(), inputs)
    assert len(measured[WHOLE]) == layers + 1
    assert ("SAN+skip" in measured) == (plain > 0)


@pytest.mark.parametrize("shape", ["samples first", "tokens first", "one sample", "as many tokens as samples"])
def test_samples_and_tokens_are_told_apart(shape):
    """The same states in four layouts have the same residuals."""
    torch.manual_seed(0)
    model, x = own.encoder().eval(), own.vectors(3, 7, own.D)
    if shape == "as many tokens as samples":
        x = x.repeat(3, 1, 1)[:7]
    x = x[:1] if shape == "one sample" else x
    other = own.encoder(batch_first=False)
    other.load_state_dict(model.state_dict())
    state, by_hand = x, [relative_residual(x.double()).mean().item()]
    for layer in copy.deepcopy(model).double().layers:
        state = layer(state.double()).detach()
        by_hand.append(relative_residual(state).mean().item())
    given = x.transpose(0, 1) if shape == "tokens first" else x
    result = residuals(other if shape == "tokens first" else model, given)
    assert result[WHOLE] == pytest.approx(by_hand, rel=1e-9)


class Shrinks(nn.Module):
    """x - (1 - c) (x - mean): what differs between tokens is multiplied by c."""

    def __init__(self, kept: float) -> None:
        super().__init__()
        self.kept = kept

    def forward(self, x):
        return x + (self.kept - 1) * (x - x.mean(1, keepdim=True))


def test_the_residual_of_a_shrinking_stack_is_known():
    common = own.vectors(1, 1, 8)
    rest = own.vectors(3, 6, 8)
    rest = (rest - rest.mean(1, keepdim=True)).double()
    model = nn.Sequential(Shrinks(0.5), Shrinks(0.25))
    result = residuals(model, inputs=common + rest, norm="frobenius")
    sizes = [rest.flatten(1).norm(dim=1) * c for c in (1.0, 0.5, 0.125)]
    whole = [(size.pow(2) + 6 * common.double().norm() ** 2).sqrt() for size in sizes]
    wanted = [(size / total).mean().item() for size, total in zip(sizes, whole)]
    assert result[WHOLE] == pytest.approx(wanted, rel=1e-6)
    assert result["SAN"][1:] == pytest.approx([1.0, 1.0])  # without the skip all of it is what differs


@pytest.mark.parametrize("kind", ["half", "compiled"])
def test_nothing_is_left_behind(kind):
    torch.manual_seed(0)
    model = own.nano_gpt().train()
    if kind == "half":
        model = model.bfloat16()
    given = torch.compile(model) if kind == "compiled" else model
    before = {name: value.clone() for name, value in model.state_dict().items()}
    kept = (torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate())
    hooks = [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()]
    inputs = own.tokens()
    assert len(residuals(given, {"tokens": inputs})[WHOLE]) == own.DEPTH + 1
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(value.dtype == before[name].dtype for name, value in model.state_dict().items())
    assert model.training and model.transformer["h"][0].drop.training
    assert [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()] == hooks
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())
    assert model.lm_head.weight is model.transformer["wte"].weight
    assert torch.equal(torch.get_rng_state(), kept[0])
    assert (np.random.get_state()[1] == kept[1]).all() and random.getstate() == kept[2]
    assert torch.backends.mha.get_fastpath_enabled()
    assert torch.equal(inputs, own.tokens())


def test_encoder_and_decoder_are_measured_apart():
    torch.manual_seed(0)
    model = nn.Transformer(16, 2, 3, 2, 32, batch_first=True)
    result = residuals(model, (own.vectors(2, 6, 16), own.vectors(2, 5, 16)))
    assert len(result[f"encoder {WHOLE}"]) == 4 and len(result[f"decoder {WHOLE}"]) == 3
    changed = copy.deepcopy(model)
    changed.decoder.layers[1].linear2.weight.data.mul_(3)
    again = residuals(changed, (own.vectors(2, 6, 16), own.vectors(2, 5, 16)))
    assert again[f"encoder {WHOLE}"] == result[f"encoder {WHOLE}"]
    assert again[f"decoder {WHOLE}"] != result[f"decoder {WHOLE}"]


@pytest.mark.parametrize("blocks", ["blocks", "DecoderBlock", ["blocks.0", "blocks.1", "blocks.2"], "modules"])
def test_blocks_are_named_by_name_class_or_module(blocks):
    torch.manual_seed(0)
    model = own.Decoder()
    given = list(model.blocks) if blocks == "modules" else blocks
    assert residuals(model, own.tokens(), blocks=given) == residuals(model, own.tokens())
    assert len(residuals(model, own.tokens(), blocks=["blocks.1", "blocks.2"])[WHOLE]) == 3


class Pyramid(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = {"nhead": 2, "dim_feedforward": 8, "batch_first": True}
        self.stages = nn.ModuleList(
            nn.ModuleList(nn.TransformerEncoderLayer(width, **layer) for _ in range(2)) for width in (8, 16)
        )
        self.widen = nn.Linear(8, 16)

    def forward(self, x):
        for number, stage in enumerate(self.stages):
            x = kinds.through(stage, self.widen(x) if number else x)
        return x


REFUSED = {
    "another kind": (own.Decoder, own.vectors(2, 3, 4), r"Decoder fails on inputs \(float32 \(2, 3, 4\)\): .*inputs="),
    "text": (own.Decoder, {"tokens": "abc"}, "inputs contains no tensor"),
    "wrong name": (own.Decoder, {"ids": own.tokens()}, "unexpected keyword argument 'ids'"),
    "pyramid": (Pyramid, own.vectors(2, 5, 8), r"changes its width from 8 to 16: .*blocks="),
    "one token": (own.Decoder, own.tokens()[:, :1], "has one token a sample"),
    "no stream": (lambda: nn.Sequential(nn.Embedding(50, 8), nn.Linear(8, 8)), own.tokens(), "no residual additions"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_measured_is_one_line_that_says_what_to_pass(case):
    make, inputs, words = REFUSED[case]
    with pytest.raises(RankfallError, match=words) as caught:
        residuals(make(), inputs)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 420


def test_a_stage_of_a_pyramid_is_measured_by_name():
    assert len(residuals(Pyramid(), own.vectors(2, 5, 8), blocks="stages.1")[WHOLE]) == 3


class WithoutSkips(nn.Module):
    def __init__(self, skips_of_maps: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList(kinds.Block() for _ in range(3))
        for layer in self.layers:
            layer.forward = lambda x, layer=layer: (
                (y := layer.attention(x)) + layer.mlp(y) if skips_of_maps else layer.attention(x)
            )

    def forward(self, x):
        return kinds.through(self.layers, x)


@pytest.mark.parametrize("skips_of_maps", [False, True])
def test_layers_without_skips_are_measured_by_their_modules(skips_of_maps):
    torch.manual_seed(0)
    model, x = WithoutSkips(skips_of_maps).eval().double(), kinds.states().double()
    (flow,) = examine(model, x).flows
    assert (flow.depth, flow.skips, flow.causal) == (3, False, True)
    state, by_hand = x, [relative_residual(x).mean().item()]
    for layer in model.layers:
        state = layer(state)
        by_hand.append(relative_residual(state.detach()).mean().item())
    result = residuals(model, x)
    assert list(result) == [WHOLE]
    assert result[WHOLE] == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("zero", [False, True])
def test_a_branch_of_zeros_is_known_for_what_it_is(zero):
    torch.manual_seed(0)
    model = kinds.Stack(depth=3)
    for block in model.blocks if zero else ():
        nn.init.zeros_(block.attention.out.weight)
        nn.init.zeros_(block.attention.out.bias)
    before = {name: one.clone() for name, one in model.state_dict().items()}
    (flow,) = examine(model, kinds.states()).flows
    assert [one.kind for one in flow.branches] == 3 * [MIXES, TOKENWISE] and flow.causal
    assert all(torch.equal(before[name], one) for name, one in model.state_dict().items())


class Experts(kinds.Block):
    """Each expert adds to the tokens that are sent to it, if there are any."""

    def __init__(self):
        super().__init__()
        self.route, self.experts = nn.Linear(kinds.WIDTH, 4), nn.ModuleList(kinds.MLP() for _ in range(4))

    def forward(self, x):
        x = x + self.attention(x)
        chosen, out = self.route(x).argmax(-1), torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = chosen == number
            if rows.any():
                out[rows] += expert(x[rows])
        return x + out


def test_experts_that_get_no_token_change_nothing():
    """Where all tokens are equal one expert of a layer gets all: the sums of the others do not happen."""
    torch.manual_seed(0)
    model, x = kinds.Stack(Experts, 3), kinds.states()
    (report,) = check(model, x)
    assert "3 mix tokens, 3 act token by token" in report.summary
    assert report.layers[-1].distinct == 1 and set(report.variants) >= {"SAN", "SAN+MLP", "SAN+skip", "transformer"}
    assert not [reason for reason in report.reasons.values() if "did not happen" in reason]
    assert len(residuals(model, x)["SAN"]) == 4


def by_hand(states):
    residuals_by_hand = [relative_residual(state.double()).mean().item() for state in states]
    return pytest.approx(residuals_by_hand, rel=1e-6)  # rotations are in float32


class Deferred(nn.Module):
    """A layer that returns its branch beside the state, and leaves the sum to the next."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.mixer = nn.RMSNorm(own.D), own.Attention(turn=own.rotary)

    def forward(self, branch, state=None):
        state = branch if state is None else branch + state
        return self.mixer(self.norm(state)), state


class DeferredNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.layers = nn.Embedding(50, own.D), nn.ModuleList(Deferred() for _ in range(4))
        self.norm = nn.RMSNorm(own.D)

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
