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
