"""Guards that check, census, watch and the Python API find the same layers, residuals and norms in every kind of stream, and that those
are what hooks see; or say what to pass."""

from __future__ import annotations

from typing import Any

import more_kinds as more
import own_modules as own
import pytest
import stream_kinds as kinds
import torch
import transformers
import unusual_models as unusual
from torch import nn

import rankfall
from rankfall.api.models import residuals_of_examined
from rankfall.census.released import rows_of_states
from rankfall.check.report import check
from rankfall.errors import RankfallError
from rankfall.rank.residual import relative_residual
from rankfall.streams.examine import examine

SIZES = {"vocab_size": 50, "num_hidden_layers": 3, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
T5 = {"vocab_size": 50, "d_model": 16, "num_layers": 2, "num_heads": 2, "d_kv": 8, "d_ff": 32}
X, PICTURES, SET = kinds.states(), own.vectors(2, 3, 5, 5), own.vectors(2, 7, 3)
IDS = {"input_ids": own.tokens()}
BOTH = IDS | {"decoder_input_ids": own.tokens().flip(1)}


def of_library(kind: str, values: dict[str, Any]) -> nn.Module:
    return transformers.AutoModel.from_config(transformers.CONFIG_MAPPING[kind](**values))


def numbered(name: str, count: int, start: int = 0) -> list[str]:
    return [f"{name}.{number}" for number in range(start, start + count)]


def encoder(batch_first: bool) -> nn.Module:
    layer = nn.TransformerEncoderLayer(kinds.WIDTH, 2, 12, batch_first=batch_first)
    return nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)


BLOCKS = [numbered("blocks", 6)]
# kind -> (module, its inputs, the layers of each stream)
KINDS: dict[str, tuple[Any, Any, list[list[str]]]] = {
    "pre-norm": (kinds.Stack, X, BLOCKS),
    "post-norm": (lambda: encoder(True), X, [numbered("layers", 3)]),
    "tokens first": (lambda: encoder(False), X, [numbered("layers", 3)]),
    "x0": (kinds.FromFirst, X, BLOCKS),
    "x0 within blocks, long skips": (more.Speedrun, X, [numbered("blocks", 4)]),
    "added long skips": (kinds.AddedSkips, X, BLOCKS),
    "scaled skips": (lambda: kinds.Stack(kinds.DeepNormBlock), X, BLOCKS),
    "gates": (lambda: kinds.Stack(kinds.Highway), X, BLOCKS),
    "tuples": (kinds.Tuples, X, BLOCKS),
    "reversible": (more.Reversible, X, [numbered("blocks", 5, 1), *BLOCKS]),
    "halves": (more.Halves, X, [numbered("blocks", 3)] * 2),
    "RevNet": (more.RevNet, PICTURES, [numbered("blocks", 3), numbered("blocks", 2, 1)]),
    "several streams a token": (unusual.Hyper, unusual.vectors(), [numbered("blocks", 3)]),
    "inline": (more.InlineTwice, X, [["addition 1 to 2", "addition 3 to 4"]]),
    "inline, called again": (kinds.Inline, X, [[f"addition {n} to {n + 1}" for n in range(1, 12, 2)]]),
    "pairs": (more.Pairs, X, [["addition 1 to 2", "addition 3 to 4", "addition 5 to 6"]]),
    "sequence": (more.sequence, X, [["1", "2", "3"]]),
    "looped": (kinds.Looped, X, [["blocks.0", "blocks.1"] * 3]),
    "tokens before samples": (lambda: kinds.Stack(kinds.TokensFirstBlock), X.transpose(0, 1).contiguous(), BLOCKS),
    "features before tokens": (kinds.Channels, X, BLOCKS),
    "perceiver": (unusual.Perceiver, unusual.vectors(), [numbered("blocks", 3)]),
    "Set Transformer": (lambda: nn.Sequential(more.Induced(3), more.Induced(), more.Induced()), SET, [["1", "2"]]),
    "FlexAttention": (lambda: kinds.Stack(lambda: kinds.Block(more.Flex()), 2), X, [numbered("blocks", 2)]),
    "encoder-decoder": (
        lambda: nn.Transformer(kinds.WIDTH, 2, 2, 3, 12, batch_first=True),
        (X, X[:, :5]),
        [numbered("decoder.layers", 3), numbered("encoder.layers", 2)],
    ),
    "ALBERT": (lambda: of_library("albert", SIZES), IDS, [["encoder.albert_layer_groups.0"] * 3]),
    "T5": (lambda: of_library("t5", T5), BOTH, [numbered("decoder.block", 2), numbered("encoder.block", 2)]),
}
HOOKED = ("pre-norm", "x0", "added long skips", "scaled skips", "gates", "tuples", "looped")  # blocks are layers
LAYOUTS = ("tokens before samples", "features before tokens")  # the states of the first kind in another layout
UNWATCHED = (
    "pre-norm",
    *LAYOUTS,
    "RevNet",
    "sequence",
    "perceiver",
    "Set Transformer",
    "FlexAttention",
    "ALBERT",
    "T5",
)


def watched(model: nn.Module, inputs: Any) -> list[dict[str, Any]]:
    """Return the rows of the second of two steps that change nothing."""
    rows: list[dict[str, Any]] = []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with rankfall.watch(model, every=1, to=rows.extend):
        for _ in range(2):
            model(*(inputs if isinstance(inputs, tuple) else [inputs])).square().sum().backward()
            optimizer.step()
    return [row for row in rows if row["step"] == 2]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_every_part_of_the_package_finds_the_same_layers_and_states(kind: str) -> None:
    make, inputs, layers = KINDS[kind]
    torch.manual_seed(0)
    model = make().eval()
    reports, examined = check(model, inputs, changes=False, only=("stream-whole",)), examine(model, inputs)
    assert [[layer.name for layer in report.layers[1:]] for report in reports] == layers
    assert all(report.results[0].verdict in ("pass", "warn") for report in reports)
    residuals = residuals_of_examined(examined, "composite")
    whole = [values for name, values in residuals.items() if name.endswith("transformer")]
    for flow, report, values in zip(examined.flows, reports, whole, strict=True):
        assert list(values) == [layer.residual for layer in report.layers]
        rows = [(row["residual"], row["norm_of_state"]) for row in rows_of_states(examined, flow)]
        assert rows == [(layer.residual, layer.norm) for layer in report.layers]
    if kind not in UNWATCHED:
        rows = watched(model, inputs)
        streams = {tuple(layer.name for layer in report.layers[1:]): report for report in reports[::-1]}
        for row, layer in zip(rows, streams[tuple(row["block"] for row in rows[1:])].layers, strict=True):
            assert row["layer"] == layer.layer and (row["entropy"] is None) == (layer.entropy is None)
            for name in ("residual", "norm", "effective_rank"):
                assert row[name] == pytest.approx(getattr(layer, name), rel=1e-4), (row["layer"], name)
    if kind in LAYOUTS:
        torch.manual_seed(0)
        model, inputs = kinds.Stack(), X
        assert (reports[0].samples, reports[0].tokens, reports[0].width) == X.shape and reports[0].causal
        assert reports[0].results[0].verdict == "pass"
    if kind in (*HOOKED, *LAYOUTS):
        by_hand = [relative_residual(state).mean().item() for state in kinds.seen_by_hooks(model, inputs)]
        assert [layer.residual for layer in reports[0].layers] == pytest.approx(by_hand, rel=1e-9)


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
    make, inputs, words = REFUSED[kind]
    torch.manual_seed(0)
    model = make()
    for measure in (examine, check, lambda model, inputs: rankfall.residuals(model, inputs=inputs)):
        with pytest.raises(RankfallError) as caught:
            measure(model, inputs)
        assert words in str(caught.value)


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
