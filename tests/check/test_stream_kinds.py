"""Guards against a check that sees a part of a model and says that all is well: every kind of stream is measured whole, or named."""

from __future__ import annotations

import pytest
import stream_kinds as kinds
import torch

from rankfall.check.checks.rank import explain_rank
from rankfall.check.library import library_model
from rankfall.check.report import check
from rankfall.rank.residual import relative_residual

# where skips are forgotten -> blocks that are named, the state before and after the cut as layers that hooks see
FORGOTTEN = {
    "in the middle": (lambda: kinds.Forgets(3), "8 blocks, 7 measured: blocks.3 has no residual addition", (3, 4)),
    "in the last": (lambda: kinds.Forgets(7), "8 blocks, 7 measured: blocks.7 has no residual addition", None),
    "in two": (lambda: kinds.Forgets(2, 5), "8 blocks, 6 measured: blocks.2, blocks.5 have no", (2, 3)),
    "around attention": (lambda: kinds.Forgets(3, block=kinds.BareAttention), "what blocks.3 computes before", None),
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
    words = " ".join(
        line for report in reports for line in [one.sentence for one in report.results] + explain_rank(report)
    )
    assert named in words and "stay apart" not in words and "needs no change" not in words
    if cut is not None:
        by_hand = [relative_residual(state).mean().item() for state in kinds.seen_by_hooks(model, kinds.states())]
        before, after = (f"{by_hand[place]:.2g}" for place in cut)
        assert f"goes from {before} to {after}" in words.replace("0.60 ", "0.6 ")
        assert f"residual {by_hand[0]:.2f} before the first part" in words


TOUCHING = {
    "expert choice": lambda: kinds.Stack(kinds.RoutedBlock),
    "a norm over the batch": lambda: kinds.Stack(kinds.BatchNormed),
}


@pytest.mark.parametrize("kind", TOUCHING)
def test_samples_that_touch_each_other_are_found_and_stay_samples(kind):
    torch.manual_seed(0)
    (report,) = check(TOUCHING[kind](), kinds.states(), changes=False)
    outcome = report.result("samples-independent")
    assert outcome.verdict == "fail" and outcome.sentence == "sample 1 changes other samples from layer 1 on"
    assert (report.samples, report.tokens) == (kinds.SAMPLES, kinds.TOKENS)
    assert report.part and "stay apart" not in report.result("rank-kept").sentence


@pytest.mark.long
def test_the_streams_of_gemma3n_are_no_tokens():
    model, inputs, name = library_model("gemma3n_text", {}, small=True, length=12, seed=0, say=lambda line: None)
    (report,) = check(model, inputs, name=name, changes=False)
    assert (report.samples, report.tokens, report.width, report.causal) == (2, 12, 32, True)
    assert report.kind.startswith("one way, attention") and "4 streams a token" in report.summary
    assert report.result("stream-whole").verdict == "pass"
