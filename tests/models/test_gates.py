"""Branches that return zero at birth are still told apart, and experts that come and go with the routing change no name."""

import pytest
import stream_kinds as kinds
import torch
from torch import nn

from rankfall import residuals
from rankfall.check.report import check
from rankfall.streams.examine import examine
from rankfall.streams.flow import MIXES, TOKENWISE


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
