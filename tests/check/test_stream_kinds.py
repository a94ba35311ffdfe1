"""Guards against a check that sees a part of a model and says that all is well: every kind of stream is measured whole, or named."""

from __future__ import annotations

import pytest
import stream_kinds as kinds
import torch

from rankfall.check.library import of_library
from rankfall.check.report import check
from rankfall.rank.residual import relative_residual


def seen_by_hooks(model, inputs):
    """The states that enter the blocks, and the one that leaves the last; (B, T, D)."""
    entered, left = [], []
    model = model.double().eval()
    for block in dict.fromkeys(model.blocks):
        block.register_forward_pre_hook(lambda module, given: entered.append(given[0]))
        block.register_forward_hook(
            lambda module, given, output: left.append(output[0] if isinstance(output, tuple) else output)
        )
    with torch.no_grad():
        model(inputs.double())
    return [*entered, left[-1]]


WHOLE = {
    "x0": kinds.FromFirst,
    "added long skips": kinds.AddedSkips,
    "values": kinds.Values,
    "scores": kinds.ResidualScores,
    "looped": kinds.Looped,
    "looped with x0": kinds.LoopedFromFirst,
    "scaled skips": lambda: kinds.Stack(kinds.DeepNormBlock),
    "tuples": kinds.Tuples,
    "highway": lambda: kinds.Stack(kinds.Highway),
    "convex": lambda: kinds.Stack(kinds.Convex),
    "convex sums": lambda: kinds.Stack(kinds.ConvexSums),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_all_layers_are_measured(kind):
    torch.manual_seed(0)
    model, inputs = WHOLE[kind](), kinds.states()
    (report,) = check(model, inputs, changes=False)
    by_hand = [relative_residual(state).mean().item() for state in seen_by_hooks(model, inputs)]
    assert len(by_hand) == kinds.DEPTH + 1
    assert [layer.residual for layer in report.layers] == pytest.approx(by_hand, rel=1e-9)
    assert (report.samples, report.tokens) == (kinds.SAMPLES, kinds.TOKENS)


# where skips are forgotten -> blocks that are named, the state before and after the cut as layers that hooks see
FORGOTTEN = {
    "in the middle": (lambda: kinds.Forgets(3), "8 blocks, 7 measured: blocks.3 has no residual addition", (3, 4)),
    "in the first": (lambda: kinds.Forgets(0), "8 blocks, 7 measured: blocks.0 has no residual addition", None),
    "in the last": (lambda: kinds.Forgets(7), "8 blocks, 7 measured: blocks.7 has no residual addition", None),
    "in two": (lambda: kinds.Forgets(2, 5), "8 blocks, 6 measured: blocks.2, blocks.5 have no", (2, 3)),
    "side by side": (lambda: kinds.Forgets(2, 3), "8 blocks, 6 measured: blocks.2, blocks.3 have no", (2, 4)),
    "around attention": (lambda: kinds.Forgets(3, block=kinds.BareAttention), "what blocks.3 computes before", None),
    "around the first attention": (
        lambda: kinds.Forgets(0, block=kinds.BareAttention),
        "what blocks.0 computes before its first addition has no x + f(x) around it",
        None,
    ),
    "around the last map": (
        lambda: kinds.Forgets(7, block=kinds.BareMLP),
        "what blocks.7 computes after its last addition has no x + f(x) around it",
        None,
    ),
}


@pytest.mark.parametrize("where", FORGOTTEN)
def test_a_skip_that_is_forgotten_is_named_and_no_part_is_apart(where):
    make, named, cut = FORGOTTEN[where]
    torch.manual_seed(0)
    model = make()
    reports = check(model, kinds.states())
    said = " ".join(line for report in reports for line in report.verdict)
    assert named in said and "stay apart" not in said and "needs no change" not in said
    if cut is not None:
        by_hand = [relative_residual(state).mean().item() for state in seen_by_hooks(model, kinds.states())]
        before, after = (f"{by_hand[place]:.2g}" for place in cut)
        assert f"goes from {before} to {after}" in said.replace("0.60 ", "0.6 ")
        assert f"over all parts of the model their residual falls from {by_hand[0]:.2f}" in said


class Subtracts(kinds.Block):
    def forward(self, x):
        x = x - self.attention(x)
        return x + self.mlp(x)


def test_a_part_whose_branch_is_subtracted_is_named():
    torch.manual_seed(0)
    (report,) = check(kinds.Stack(Subtracts), kinds.states(), changes=False)
    assert len(report.findings) == kinds.DEPTH and "stay apart" not in " ".join(report.verdict)
    assert report.findings[0].startswith("what blocks.0 computes before its first addition has no x + f(x) around it")


def test_streams_that_maps_join_are_judged_together():
    torch.manual_seed(0)
    reports = {report.stream: report for report in check(kinds.JoinedSkips(), kinds.states(), changes=False)}
    assert [report.depth for report in reports.values()] == [3, 1, 1, 1]
    assert all("stay apart" not in report.verdict[-1] for report in reports.values())
    assert reports["blocks.3"].findings[0].startswith("the stream is cut: no skip passes joins.0, between blocks.2 and")
    first, last = reports["blocks.0"].layers[0].residual, reports["blocks.5"].layers[-1].residual
    assert f"over all parts of the model their residual falls from {first:.2f} to {last:.2f}" in " ".join(
        reports["blocks.5"].verdict
    )


LAYOUTS = {
    "samples first": (kinds.Stack, kinds.states()),
    "tokens first": (lambda: kinds.Stack(kinds.TokensFirstBlock), kinds.states().transpose(0, 1).contiguous()),
    "features before tokens": (kinds.Channels, kinds.states()),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_states_in_other_layouts_have_the_same_residuals(layout):
    make, inputs = LAYOUTS[layout]
    torch.manual_seed(0)
    (report,) = check(make(), inputs, changes=False)
    torch.manual_seed(0)
    by_hand = [relative_residual(state).mean().item() for state in seen_by_hooks(kinds.Stack(), kinds.states())]
    assert [layer.residual for layer in report.layers] == pytest.approx(by_hand, rel=1e-9)
    assert (report.samples, report.tokens, report.width) == (kinds.SAMPLES, kinds.TOKENS, kinds.WIDTH)
    assert report.causal and not report.findings


def test_features_before_tokens_are_told_where_the_model_is_given_them():
    torch.manual_seed(0)
    (report,) = check(kinds.GivenChannels(), kinds.states().transpose(1, 2).contiguous(), changes=False)
    assert (report.samples, report.tokens, report.width) == (kinds.SAMPLES, kinds.TOKENS, kinds.WIDTH)
    assert report.layers[0].residual == pytest.approx(relative_residual(kinds.states()).mean().item(), rel=1e-6)


@pytest.mark.parametrize(
    ("make", "axis"), [(kinds.Hyper, 2), (lambda: kinds.Hyper(kinds.AltBlock, 0), 0)], ids=["hyper", "altup"]
)
def test_streams_of_one_token_are_no_tokens(make, axis):
    torch.manual_seed(0)
    model, inputs = make(), kinds.states()
    (report,) = check(model, inputs)
    by_hand = []
    for state in seen_by_hooks(model, inputs):  # a token is all of its streams, one behind the other
        rows = state.movedim(axis, 2).flatten(2)
        by_hand.append(relative_residual(rows).mean().item())
    assert (report.samples, report.tokens, report.width) == (kinds.SAMPLES, kinds.TOKENS, kinds.WIDTH)
    assert report.causal and "4 streams a token of width 8" in report.summary
    assert [layer.residual for layer in report.layers] == pytest.approx(by_hand, rel=1e-9)


TOUCHING = {
    "expert choice": lambda: kinds.Stack(kinds.RoutedBlock),
    "expert choice on flat states": kinds.Flat,
    "a norm over the batch": lambda: kinds.Stack(kinds.BatchNormed),
    "a norm over the batch behind additions": lambda: kinds.Stack(kinds.PostBatchNormed),
    "streams that are folded into samples": kinds.Folded,
}


@pytest.mark.parametrize("kind", TOUCHING)
def test_samples_that_touch_each_other_are_found_and_stay_samples(kind):
    torch.manual_seed(0)
    (report,) = check(TOUCHING[kind](), kinds.states(), changes=False)
    assert report.findings[0].startswith("samples touch each other: the first one changes others from layer 1 on")
    copies = 4 if "folded" in kind else 1
    assert (report.samples, report.tokens) == (copies * kinds.SAMPLES, kinds.TOKENS)
    assert report.part and "stay apart" not in " ".join(report.verdict)


def test_samples_that_do_not_touch_are_not_found_to_and_one_sample_alone_is_measured():
    torch.manual_seed(0)
    for make in (kinds.Stack, lambda: kinds.Stack(kinds.RoutedBlock)):
        (report,) = check(make(), kinds.states()[:1], changes=False)
        assert not report.findings and (report.samples, report.tokens) == (1, kinds.TOKENS)


def test_halves_of_a_reversible_network_are_both_streams_and_what_is_not_in_one_is_said():
    torch.manual_seed(0)
    reports = check(kinds.Reversible(), kinds.states(), changes=False)
    assert sorted(report.depth for report in reports) == [kinds.DEPTH - 1, kinds.DEPTH]
    (short,) = [report for report in reports if report.depth < kinds.DEPTH]
    assert short.findings == ["this stream begins behind blocks.0: what is added to it there is not in it"]
    reports = check(kinds.Reversible(copies=True), kinds.states(), changes=False)
    assert [report.depth for report in reports] == [kinds.DEPTH] * 2 and not any(one.findings for one in reports)


@pytest.mark.parametrize("make", [kinds.Inline, kinds.Pairs, kinds.Learned])
def test_layers_that_modules_do_not_hold_are_all_counted(make):
    torch.manual_seed(0)
    (report,) = check(make(), kinds.states(), changes=False)
    assert report.depth == kinds.DEPTH and not report.findings


@pytest.mark.long
def test_the_streams_of_gemma3n_are_no_tokens():
    model, inputs, name = of_library("gemma3n_text", {}, small=True, length=12, seed=0, say=lambda line: None)
    (report,) = check(model, inputs, name=name, changes=False)
    assert (report.samples, report.tokens, report.width, report.causal) == (2, 12, 32, True)
    assert report.kind.startswith("one way, attention") and "4 streams a token" in report.summary
    assert not report.findings


class SmallMap(torch.nn.Module):
    """Convolutions whose first state is a map of 2 x 2 places, each of which sees the whole picture."""

    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 8, 7, stride=2, padding=3)
        self.blocks = torch.nn.ModuleList(torch.nn.Conv2d(8, 8, 3, padding=1) for _ in range(3))

    def forward(self, pictures):  # (B, 3, 4, 4)
        x = self.stem(pictures)  # (B, 8, 2, 2)
        for block in self.blocks:
            x = x + torch.relu(block(x))
        return x


def test_places_of_a_small_map_are_tokens_though_each_sees_the_whole_picture():
    torch.manual_seed(0)
    model = SmallMap()
    (report,) = check(model, torch.randn(2, 3, 4, 4), changes=False)
    assert (report.samples, report.tokens, report.width, report.depth) == (2, 4, 8, 3)
