"""Guards against a check that sees a part of a model and says that all is well: every kind of stream is measured whole, or named."""

from __future__ import annotations

import pytest
import stream_kinds as kinds
import torch

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
        "what blocks.0 computes before its first addition has no skip around it",
        None,
    ),
    "around the last map": (
        lambda: kinds.Forgets(7, block=kinds.BareMLP),
        "what blocks.7 computes after its last addition has no skip around it",
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
