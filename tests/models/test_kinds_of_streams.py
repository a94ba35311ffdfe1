"""Guards that check, census and the Python API find the same layers, residuals and norms in every kind of stream, or say what to pass."""

from __future__ import annotations

from typing import Any

import more_kinds as more
import own_modules as own
import pytest
import stream_kinds as kinds
import torch
import transformers
from torch import nn

from rankfall import residuals
from rankfall.census.released import rows_of_states
from rankfall.check.report import check
from rankfall.errors import RankfallError
from rankfall.streams.examine import examine

SIZES = {"vocab_size": 50, "num_hidden_layers": 3, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
T5 = {"vocab_size": 50, "d_model": 16, "num_layers": 2, "num_heads": 2, "d_kv": 8, "d_ff": 32}
BART = {"d_model": 16, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "encoder_layers": 2, "decoder_layers": 2} | {
    "vocab_size": 50, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "pad_token_id": 1,
}  # fmt: skip
X, PICTURES, SET = kinds.states(), own.vectors(2, 3, 5, 5), own.vectors(2, 7, 3)
IDS = {"input_ids": own.tokens()}
BOTH = IDS | {"decoder_input_ids": own.tokens().flip(1)}


def of_library(kind: str, values: dict[str, Any]) -> nn.Module:
    return transformers.AutoModel.from_config(transformers.CONFIG_MAPPING[kind](**values))


def numbered(name: str, count: int, start: int = 0) -> list[str]:
    return [f"{name}.{number}" for number in range(start, start + count)]


# kind -> (module, its inputs, the layers of each stream)
KINDS: dict[str, tuple[Any, Any, list[list[str]]]] = {
    "pre-norm": (kinds.Stack, X, [numbered("blocks", 6)]),
    "post-norm": (own.encoder, own.vectors(2, 9, 16), [numbered("layers", 4)]),
    "x0": (kinds.FromFirst, X, [numbered("blocks", 6)]),
    "x0 within blocks, long skips": (more.Speedrun, X, [numbered("blocks", 4)]),
    "halves": (more.Halves, X, [numbered("blocks", 3), numbered("blocks", 3)]),
    "RevNet": (more.RevNet, PICTURES, [numbered("blocks", 3), numbered("blocks", 2, 1)]),
    "inline": (more.InlineTwice, X, [["addition 1 to 2", "addition 3 to 4"]]),
    "pairs": (more.Pairs, X, [["addition 1 to 2", "addition 3 to 4", "addition 5 to 6"]]),
    "sequence": (more.sequence, X, [["1", "2", "3"]]),
    "looped": (kinds.Looped, X, [["blocks.0", "blocks.1"] * 3]),
    "universal": (more.Universal, X, [["blocks.0"] * 3]),
    "channels": (kinds.Channels, X, [numbered("blocks", 6)]),
    "perceiver": (more.Perceiver, X, [["addition 1 to 4", "addition 5 to 8"]]),
    "Set Transformer": (lambda: nn.Sequential(more.Induced(3), more.Induced(), more.Induced()), SET, [["1", "2"]]),
    "FlexAttention": (lambda: kinds.Stack(lambda: kinds.Block(more.Flex()), 2), X, [numbered("blocks", 2)]),
    "ALBERT": (lambda: of_library("albert", SIZES), IDS, [["encoder.albert_layer_groups.0"] * 3]),
    "T5": (lambda: of_library("t5", T5), BOTH, [numbered("decoder.block", 2), numbered("encoder.block", 2)]),
    "BART": (lambda: of_library("bart", BART), BOTH, [numbered("decoder.layers", 2), numbered("encoder.layers", 2)]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_part_of_the_package_finds_the_same_layers(kind: str) -> None:
    make, inputs, layers = KINDS[kind]
    torch.manual_seed(0)
    model = make()
    reports, found = check(model, inputs, changes=False), residuals(model, inputs=inputs)
    assert [[layer.name for layer in report.layers[1:]] for report in reports] == layers
    assert all(report.result("stream-whole").verdict in ("pass", "warn") for report in reports)
    whole = [values for name, values in found.items() if name.endswith("transformer")]
    assert [list(values) for values in whole] == [[layer.residual for layer in one.layers] for one in reports]
    examined = examine(model, inputs)
    for flow, report in zip(examined.flows, reports, strict=True):
        rows = rows_of_states(examined, flow)
        assert [(row["residual"], row["norm_of_state"]) for row in rows] == [
            (layer.residual, layer.norm) for layer in report.layers
        ]


REFUSED = {
    "streams in the axis of samples": (more.Folded, X, "give them an axis of their own, as in (2, 7, 2, 8)"),
    "one layer of a Set Transformer": (
        lambda: nn.Sequential(more.Induced(3), more.Induced()),
        SET,
        "the additions x + f(x) inside 0.first, 0.second, 1.first, 1.second begin behind a map, and no skip goes around it; name two or",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_stream_that_cannot_be_measured_is_refused_with_what_to_pass(kind: str) -> None:
    make, inputs, said = REFUSED[kind]
    torch.manual_seed(0)
    model = make()
    for measure in (examine, check, lambda model, inputs: residuals(model, inputs=inputs)):
        with pytest.raises(RankfallError) as caught:
            measure(model, inputs)
        assert said in str(caught.value)


def test_halves_are_those_that_hooks_see() -> None:
    torch.manual_seed(0)
    model, states = more.Halves().double().eval(), []
    for block in model.blocks:
        block.register_forward_hook(lambda module, given, output: states.append(output.chunk(2, -1)))
    x = X.double()
    model(x)
    by_hand = [[model.embed(x), *(pair[half] for pair in states)] for half in (1, 0)]
    streams = [[layer.norm for layer in report.layers] for report in check(model, x, changes=False)]
    norms = [[one.square().sum(-1).mean(-1).sqrt().mean().item() for one in half] for half in by_hand]
    assert sorted(streams) == [pytest.approx(one, rel=1e-9) for one in sorted(norms)]
