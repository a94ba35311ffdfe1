"""Skips that are no addition x + f(x) of a layer: they go around the layers, or through a gate, or tokens are merged between two stacks."""

from __future__ import annotations

import pytest
import stream_kinds as kinds
import torch
import torch.nn.functional as F
from torch import nn

from rankfall.check.conditions import condition
from rankfall.check.report import check
from rankfall.check.table import text
from rankfall.models.modules.examine import examine
from rankfall.rank.residual import relative_residual


class Mixed(nn.Module):
    """Two streams of a token that a matrix mixes between the layers: hyper-connections."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.LayerNorm(8), kinds.Attention()) for _ in range(kinds.DEPTH))
        self.mix = nn.Parameter(torch.eye(2) + 0.05 * torch.randn(kinds.DEPTH, 2, 2))

    def forward(self, x):
        x = x.unsqueeze(2).expand(-1, -1, 2, -1)
        for layer, mix in zip(self.layers, self.mix, strict=True):
            x = torch.einsum("btnd,nm->btmd", x, mix) + layer(x.mean(2)).unsqueeze(2)
        return x.sum(2)


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


@pytest.mark.parametrize(("make", "how"), [(Mixed, "add"), (Joined, "cat")])
def test_a_skip_around_the_layers_is_a_finding_and_what_they_return_is_no_state(make, how):
    torch.manual_seed(0)
    (report,) = check(make(), kinds.states())
    (finding,) = report.findings
    assert finding.startswith(f"a skip goes around layers.1 and is joined to its output by {how} in the model itself")
    assert report.verdict == [f"Found: {finding}.", "What becomes of the tokens is not known."]
    assert [layer.residual is None for layer in report.layers] == [False] * kinds.DEPTH + [True]
    assert condition("residual_last < 0.1").holds(report) is None and not report.bands and not report.interventions


class MaskedStates(nn.Module):
    """Layers without skips, masked by what they are given."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(kinds.Bare() for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x) * (x != 0)
        return x


@pytest.mark.parametrize("make", [MaskedStates, lambda: nn.Sequential(*(kinds.Bare() for _ in range(3)))])
def test_layers_without_skips_have_nothing_around_them(make):
    torch.manual_seed(0)
    (flow,) = examine(make(), kinds.states()).flows
    assert not flow.around and not flow.missing and not flow.skips


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


@pytest.mark.parametrize("order", [("both", "mlp"), ("mlp", "both"), ("state", "mlp")])
@pytest.mark.parametrize("embedded", [True, False])
def test_a_skip_through_a_gate_is_an_addition(order, embedded):
    torch.manual_seed(0)
    model, inputs = kinds.Stack(lambda: Gated(order)), kinds.states()
    if not embedded:
        model.embed = nn.Identity()
    (report,) = check(model, inputs)
    assert not report.findings and report.depth == kinds.DEPTH and report.causal
    assert f"{kinds.DEPTH} mix tokens, {kinds.DEPTH} act token by token" in report.summary
    assert report.kind.startswith("one way, attention")
    by_hand, model = [], model.double().eval()
    with torch.no_grad():
        x = model.embed(inputs.double())
        for block in model.blocks:
            by_hand.append(relative_residual(x).mean().item())
            x = block(x)
    assert [layer.residual for layer in report.layers[:-1]] == pytest.approx(by_hand, rel=1e-9)
    assert report.layers[-1].residual == pytest.approx(relative_residual(x).mean().item(), rel=1e-9)


class Interpolated(kinds.Block):
    """A recurrence over time in a list of tokens: its gates are no skips."""

    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(8, 8)

    def forward(self, x):
        h, kept = torch.zeros_like(x[:, 0]), []
        for token in x.unbind(1):
            g = torch.sigmoid(h @ self.cell.weight_hh[:8].T + token)
            h = g * h + (1 - g) * torch.tanh(token + h @ self.cell.weight_hh[8:16].T)
            kept.append(h)
        x = x + torch.stack(kept, 1)
        return x + self.mlp(x)


def test_gates_of_a_recurrence_are_no_skips():
    torch.manual_seed(0)
    (report,) = check(kinds.Stack(Interpolated), kinds.states(), changes=False)
    assert report.depth == kinds.DEPTH and not report.findings
    assert f"{2 * kinds.DEPTH} residual additions" in report.summary and report.tokens == kinds.TOKENS


class Merged(nn.Module):
    """Two stacks with all skips. Between them two tokens become one, by an addition."""

    def __init__(self):
        super().__init__()
        self.first, self.second = (nn.ModuleList(kinds.Block() for _ in range(3)) for _ in range(2))

    def forward(self, x):  # (B, 8, D)
        for block in self.first:
            x = block(x)
        x = x[:, ::2] + x[:, 1::2]
        for block in self.second:
            x = block(x)
        return x


def test_blocks_behind_a_merge_of_tokens_are_not_said_to_have_no_additions():
    torch.manual_seed(0)
    (report,) = check(Merged(), kinds.states(2, 8, 8), changes=False)
    assert report.findings == [
        "6 blocks, 3 measured: the residual additions of second.0, second.1, second.2 continue the stream and are in none of its layers, "
        "as their states have the shape (2, 4, 8), and (2, 8, 8) in the layers; to measure them, name them by blocks="
    ]
    assert "stay apart" not in " ".join(report.verdict)
    (report,) = check(Merged(), kinds.states(2, 8, 8), changes=False, blocks="second")
    assert (report.depth, report.tokens) == (3, 4) and not report.findings


def test_a_cut_behind_the_last_addition_of_a_layer_is_said_from_the_state_before_it():
    torch.manual_seed(0)
    reports = check(kinds.Forgets(3, block=kinds.BareMLP), kinds.states(), changes=False)
    before, after = sorted(reports, key=lambda report: report.layers[1].name)
    (cut,) = [finding for finding in after.findings if "the stream is cut" in finding]
    ends = (before.layers[-2].residual, after.layers[0].residual)
    assert f"goes from {ends[0]:.2f} to {ends[1]:.2f}" in cut and ends[0] != pytest.approx(ends[1], rel=1e-3)
    assert "is a skip missing?." not in " ".join(before.verdict) and "is a skip missing?" in " ".join(before.verdict)


class Backwards(kinds.Attention):
    """A mask of the wrong sense."""

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu()
        return self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=mask))


def test_a_mask_of_the_wrong_sense_and_tokens_along_another_axis_are_said_in_the_first_line():
    torch.manual_seed(0)
    (report,) = check(kinds.Stack(lambda: kinds.Block(Backwards())), kinds.states(), changes=False)
    assert report.kind.startswith("one way, backwards, attention") and not report.causal
    assert "tokens; one way" in text([report], "m").splitlines()[0]
    inputs = kinds.states().transpose(0, 1).contiguous()
    (report,) = check(kinds.Stack(kinds.TokensFirstBlock), inputs, changes=False)
    assert "2 x 7 tokens (along axis 0); one way, attention" in text([report], "m").splitlines()[0]
