"""Branches that return zero at birth are still told apart, and experts that come and go with the routing change no name."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from rankfall import residuals
from rankfall.check.report import check
from rankfall.streams.examine import examine
from rankfall.streams.flow import MIXES, TOKENWISE

WIDTH = 8


class Attention(nn.Module):
    def __init__(self, zero):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        if zero:
            nn.init.zeros_(self.out.weight)
            nn.init.zeros_(self.out.bias)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True))


class Plain(nn.Module):
    def __init__(self, branch):
        super().__init__()
        self.branch, self.mlp = branch, nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        x = x + self.branch(x)
        return x + self.mlp(x)


class Stack(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x, *more):
        for layer in self.layers:
            x = layer(x, *more)
        return x


@pytest.mark.parametrize("zero", [False, True])
def test_a_branch_of_zeros_is_known_for_what_it_is(zero):
    torch.manual_seed(0)
    model, x = Stack(*(Plain(Attention(zero)) for _ in range(3))), torch.randn(2, 6, WIDTH)
    before = {name: one.clone() for name, one in model.state_dict().items()}
    (flow,) = examine(model, x).flows
    assert [one.kind for one in flow.branches] == 3 * [MIXES, TOKENWISE] and flow.causal
    assert all(torch.equal(before[name], one) for name, one in model.state_dict().items())


class Experts(nn.Module):
    """Each expert adds to the tokens that are sent to it, if there are any."""

    def __init__(self):
        super().__init__()
        self.route, self.experts = nn.Linear(WIDTH, 4), nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.mix = Attention(False)

    def forward(self, x):
        x = x + self.mix(x)
        chosen, out = self.route(x).argmax(-1), torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = chosen == number
            if rows.any():
                out[rows] += expert(x[rows])
        return x + out


def test_experts_that_get_no_token_change_nothing():
    """Where all tokens are equal one expert of a layer gets all: the sums of the others do not happen."""
    torch.manual_seed(0)
    model, x = Stack(*(Experts() for _ in range(3))), torch.randn(2, 6, WIDTH)
    (report,) = check(model, x)
    assert "3 mix tokens, 3 act token by token" in report.summary
    assert report.layers[-1].distinct == 1 and set(report.variants) >= {"SAN", "SAN+MLP", "SAN+skip", "transformer"}
    assert not [reason for reason in report.reasons.values() if "did not happen" in reason]
    assert len(residuals(model, x)["SAN"]) == 4
