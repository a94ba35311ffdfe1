"""Skips that are no addition x + f(x) of a layer: they go around the layers, or through a gate, or tokens are merged between two stacks."""

from __future__ import annotations

import pytest
import stream_kinds as kinds
import torch
from torch import nn

from rankfall.check.report import check
from rankfall.check.table import condition
from rankfall.rank.residual import relative_residual


class Joined(nn.Module):
    """x = W [x, f(x)]"""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(kinds.Attention() for _ in range(kinds.DEPTH))
        self.joins = nn.ModuleList(nn.Linear(16, 8) for _ in range(kinds.DEPTH))
        with torch.no_grad():
            self.joins[-1].bias.normal_().mul_(100)  # the last state is one vector

    def forward(self, x):
        for layer, join in zip(self.layers, self.joins, strict=True):
            x = join(torch.cat([x, layer(x)], -1))
        return x


def test_a_skip_around_the_layers_is_a_finding_and_what_they_return_is_no_state():
    torch.manual_seed(0)
    (report,) = check(Joined(), kinds.states())
    outcome = report.result("stream-whole")
    assert outcome.verdict == "fail" and outcome.sentence.startswith(
        "a skip goes around layers.1 and is joined to its output by cat in the model itself"
    )
    assert report.result("rank-kept").verdict == "not applicable"
    assert [layer.residual is None for layer in report.layers] == [False] * kinds.DEPTH + [True]
    assert condition("residual_last < 0.1").holds(report) is None and not report.bands and not report.interventions


class Gated(kinds.Block):
    """x g + f(x) (1 - g), and an addition behind it, or before it; or a gate of f(x) alone."""

    def __init__(self, order):
        super().__init__()
        self.gate, self.order = nn.Linear(8, 8), order

    def forward(self, x):
        for part in self.order:
            if part == "mlp":
                x = x + self.mlp(x)
            else:
                g = self.gate(x).sigmoid()
                x = g * x + (1 - g) * self.attention(x) if part == "both" else self.attention(x) + x * g
        return x


@pytest.mark.parametrize("order", [("both", "mlp"), ("state", "mlp")])
def test_a_skip_through_a_gate_is_an_addition(order):
    torch.manual_seed(0)
    model, inputs = kinds.Stack(lambda: Gated(order)), kinds.states()
    (report,) = check(model, inputs)
    assert report.result("stream-whole").verdict == "pass" and report.depth == kinds.DEPTH and report.causal
    assert f"{kinds.DEPTH} mix tokens, {kinds.DEPTH} act token by token" in report.summary
    assert report.kind.startswith("one way, attention")
    by_hand = [relative_residual(state).mean().item() for state in kinds.seen_by_hooks(model, inputs)]
    assert [layer.residual for layer in report.layers] == pytest.approx(by_hand, rel=1e-9)


class Merged(nn.Module):
    """Two stacks with all skips. Between them two tokens become one, by an addition."""

    def __init__(self):
        super().__init__()
        self.first, self.second = (nn.ModuleList(kinds.Block() for _ in range(3)) for _ in range(2))

    def forward(self, x):  # (B, 8, D)
        x = kinds.through(self.first, x)
        x = x[:, ::2] + x[:, 1::2]
        return kinds.through(self.second, x)


def test_blocks_behind_a_merge_of_tokens_are_not_said_to_have_no_additions():
    torch.manual_seed(0)
    (report,) = check(Merged(), kinds.states(2, 8, 8), changes=False)
    assert report.result("stream-whole").sentence == (
        "6 blocks, 3 measured: second.0, second.1, second.2 are left out, since states have the shape (2, 4, 8) there and (2, 8, 8) in "
        "the layers; to measure what is left out, pass its names as blocks="
    )
    assert "stay apart" not in report.result("rank-kept").sentence
    (report,) = check(Merged(), kinds.states(2, 8, 8), changes=False, blocks="second")
    assert (report.depth, report.tokens) == (3, 4) and report.result("stream-whole").verdict == "pass"
