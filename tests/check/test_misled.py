"""Guards against numbers that mislead: states that are not finite, a token that hides the others, inputs that are read again."""

from __future__ import annotations

import pytest
import stream_kinds as kinds
import torch
from torch import nn

from rankfall.check.checks.rank import explain_rank, judge_rank
from rankfall.check.layer import LayerReport, Outcome, StreamReport
from rankfall.check.report import check
from rankfall.check.table import report_text


class Masked(nn.Module):
    """Attention whose mask has the wrong sense: the last token has nothing to read."""

    def __init__(self):
        super().__init__()
        self.heads = nn.MultiheadAttention(kinds.WIDTH, 2, batch_first=True)

    def forward(self, x):
        mask = torch.tril(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool))
        return x + self.heads(x, x, x, attn_mask=mask)[0]


def test_states_that_are_not_finite_are_a_finding_and_nothing_rests_on_them():
    torch.manual_seed(0)
    model = kinds.Stack(Masked)
    model.blocks[0] = kinds.Block()
    (report,) = check(model, kinds.states())
    assert report.depth == kinds.DEPTH
    outcome = report.result("numbers-hold")
    assert (outcome.verdict, outcome.where) == (
        "fail",
        "blocks.1.heads",
    ) and "the state after layer 2 has NaN" in outcome.sentence
    assert {one.verdict for one in report.results} == {"fail", "pass", "not applicable"}
    assert report.result("rank-kept").sentence == "nothing is known of the states: states are not finite"
    message = report_text([report], "model")
    assert not [word for word in ("mix", "both ways", "one way", "norm on", "apart") if word in message]
    assert report.layers[1].residual is not None and report.layers[2].residual is None and not report.bands


class LargeFirst(kinds.Stack):
    """A first token that is much larger than the others, which a bias makes one vector."""

    def __init__(self):
        super().__init__()
        self.first = nn.Parameter(200 * torch.randn(1, 1, kinds.WIDTH))
        with torch.no_grad():
            for block in self.blocks:
                block.mlp.down.bias.normal_().mul_(20)

    def forward(self, x):
        x = torch.cat([self.first.expand(len(x), -1, -1), x], 1)
        return kinds.through(self.blocks, x)


def test_a_large_first_token_does_not_hide_that_the_others_become_one_vector():
    torch.manual_seed(0)
    (report,) = check(LargeFirst(), kinds.states(2, 16, kinds.WIDTH))
    first, last = (report.layers[place].without_first for place in (0, -1))
    assert report.layers[-1].residual > 0.2 and last < 0.05
    message = report.result("rank-kept").sentence
    assert (
        f"without the first token, tokens become one vector: residual {first:.2f} before the layers and {last:.2g}"
        in message
    )
    assert "stay apart" not in message and "needs no change" not in message


def verdict(report):
    return [judge_rank(report).sentence, *explain_rank(report)]


def reported(column, values, residuals):
    layers = [LayerReport(n, residual=one, **{column: other}) for n, (one, other) in enumerate(zip(residuals, values))]
    report = StreamReport("", "", "", len(layers) - 1, 8, 5, 2, True, layers)
    report.interventions = [Outcome("smaller", [residuals[-1]], 1.0)]
    return report


@pytest.mark.parametrize(
    ("column", "what"), [("without_first", "first token"), ("without_largest", "three largest ch")]
)
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.9, 0.5, 0.04], "become one vector: residual 0.90 before the layers and 0.04 after layer 2"),
        ([0.9, 0.04, 0.5], "become one vector: residual 0.90 before the layers, 0.04 after layer 1 and 0.50"),
        ([0.01, 0.5, 0.5], "are one vector before the layers: residual 0.01 before the layers and 0.50"),
    ],
)
def test_what_hides_the_tokens_is_named_and_nothing_is_apart(column, what, values, message):
    lines = verdict(reported(column, values, [1.0, 1.0, 0.9]))
    assert f"without the {what}" in lines[0] and message in lines[0]
    assert not [line for line in lines if "stay apart" in line or "needs no change" in line]
    lines = verdict(reported(column, values, [1.0, 1.0, 0.6]))
    assert message in lines[0]
    assert "without" not in verdict(reported(column, values, [1.0, 0.01, 0.9]))[0]
    assert "stay apart" in verdict(reported(column, [0.9, 0.8, 0.1], [1.0, 1.0, 0.9]))[0]


@pytest.mark.parametrize(
    ("residuals", "words"),
    [
        ([0.92, 0.0072, 0.27], "become one vector: residual 0.92 before the layers, 0.0072 after layer 1 and 0.27"),
        ([0.92, 0.03, 0.08], "become one vector: residual 0.92 before the layers, 0.03 after layer 1 and 0.08"),
        ([0.92, 0.1, 0.17], "become more alike: residual 0.92 before the layers, 0.10 after layer 1 and 0.17"),
        ([0.9, 0.001, 0.9], "become one vector: residual 0.90 before the layers, 0.001 after layer 1"),
        ([0.06, 0.049], "become one vector: residual 0.06 before the layers and 0.049"),
        ([0.04, 0.04], "one vector before the layers"),
        ([0.0, 0.9], "one vector before the layers: residual 0 before the layers and 0.90"),
    ],
)
def test_one_vector_anywhere_is_told_whatever_is_left_in_the_end(residuals, words):
    lines = verdict(reported("norm", [1.0] * len(residuals), residuals))
    assert words in lines[0]
    assert not [line for line in lines if "needs no change" in line]
    assert "more alike" in lines[0] or not [line for line in lines if "stay apart" in line]
