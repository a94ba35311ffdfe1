"""Guards the numbers of a check by known answers: analytic, by brute force, or by a second way; and what it says of them."""

import math

import pytest
import torch
import torch.nn.functional as F
from more_kinds import Skip
from torch import nn

from rankfall.check.checks.rank import explain_rank
from rankfall.check.equal import distinct_rows
from rankfall.check.gradients import differentiate, forward, gradients
from rankfall.check.interventions import interventions, matrices_of_layers, multiplied
from rankfall.check.layer import LayerReport, effective_rank, without_largest
from rankfall.check.report import check
from rankfall.check.table import condition, report_text
from rankfall.errors import RankfallError
from rankfall.rank.residual import relative_residual
from rankfall.streams.examine import examine
from rankfall.testing import assert_keeps_rank

WIDTH, TOKENS = 8, 5


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def stack(*branches):
    """Return layers x + f(x), for functions of tokens."""
    return nn.Sequential(*map(Skip, branches))


class Uniform(nn.Module):
    """Every token is given the mean of all: queries and keys of zero."""

    def forward(self, x):
        zero = torch.zeros_like(x)
        return F.scaled_dot_product_attention(zero * x, zero, x)


class Attends(nn.Module):
    """Softmax attention of one head, without maps, written out or not."""

    def __init__(self, fused=True, causal=False, scale=1.0):
        super().__init__()
        self.fused, self.causal, self.scale = fused, causal, scale

    def forward(self, x):
        q, k = x * 1, x * 1  # tensors of their own, with gradients of their own
        if self.fused:
            return F.scaled_dot_product_attention(q, k, x, is_causal=self.causal, scale=self.scale)
        scores = q @ k.transpose(-2, -1) * self.scale
        if self.causal:
            scores = scores.masked_fill(torch.ones(x.shape[1], x.shape[1]).triu(1).bool(), -math.inf)
        return scores.softmax(-1) @ x


def report_of(module, x=None, **options):
    (report,) = check(module, drawn(3, TOKENS, WIDTH) if x is None else x, **options)
    return report


@pytest.mark.parametrize(("count", "tokens"), [(1, 4), (3, 6), (4, 4)])
def test_the_effective_rank_of_equal_singular_values_is_their_number(count, tokens):
    basis = torch.linalg.qr(drawn(WIDTH, WIDTH))[0][:count]
    rows = torch.linalg.qr(drawn(tokens, tokens, seed=1))[0][:, :count]
    assert effective_rank((rows @ basis)[None])[0] == pytest.approx(count, rel=1e-9)


def test_the_largest_channels_are_left_out():
    x = drawn(2, TOKENS, WIDTH)
    large = x.clone()
    large[..., [1, 4, 6]] *= 1000
    assert torch.equal(without_largest(large), x[..., [0, 2, 3, 5, 7]])


def test_uniform_attention_has_known_weights():
    report = report_of(stack(Uniform(), Uniform()))
    for layer in report.layers[1:]:
        assert layer.entropy == pytest.approx(math.log(TOKENS))
        assert layer.largest == layer.first == pytest.approx(1 / TOKENS)
    x = drawn(3, TOKENS, WIDTH)
    total = x + x.mean(1, keepdim=True)
    assert report.layers[1].residual == pytest.approx(relative_residual(total).mean().item(), rel=1e-12)
    assert report.variants["SAN"][1] == pytest.approx(0.0, abs=1e-15)
    text = report_text([report], "m")
    assert "SAN ~" in text and "transformer ~" not in text  # rounding is marked
    assert report.layers[1].without_first == pytest.approx(relative_residual(total[:, 1:]).mean().item(), rel=1e-12)
    assert report.layers[1].norm == pytest.approx(total.pow(2).sum(-1).mean(-1).sqrt().mean().item(), rel=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_weights_are_the_same_written_out_or_fused(causal):
    fused, plain = (report_of(stack(*(Attends(one, causal) for _ in range(3)))) for one in (True, False))
    for one, other in zip(fused.layers[1:], plain.layers[1:], strict=True):
        gradients = ("query_gradient", "key_gradient", "gradient", "influence_last")
        for name in ("residual", "entropy", "largest", "first", *gradients):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9), name
        assert one.orders == pytest.approx(other.orders, abs=1e-6)


@pytest.mark.parametrize(
    ("branch", "order"),
    [(Attends(), 3.0), (Attends(causal=True), 1.0), ("placed", 0.0)],
)
def test_orders_of_contraction_are_known(branch, order):
    branch = Placed() if branch == "placed" else branch
    report = report_of(stack(branch, branch))
    assert [list(layer.orders.values()) for layer in report.layers[1:]] == [[pytest.approx(order, abs=0.02)]] * 2


class Placed(nn.Module):
    """A mean over earlier tokens that is told how many there are: equal tokens come out different."""

    def forward(self, x):
        count = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None]
        return x.cumsum(1) / count**0.5


def test_equal_tokens_are_counted():
    assert distinct_rows(torch.tensor([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0 + 1e-12], [3.0, 4.0]])) == 2
    assert [layer.distinct for layer in report_of(stack(Attends(), Attends())).layers] == [1, 1, 1]
    assert [layer.distinct for layer in report_of(stack(Placed(), Placed())).layers] == [1, TOKENS, TOKENS]


class Linear(nn.Module):
    """Tokens are mixed by a matrix: what the Jacobian is, is known."""

    def __init__(self, seed):
        super().__init__()
        self.mix = nn.Parameter(drawn(TOKENS, TOKENS, seed=seed))
        self.map = nn.Parameter(drawn(WIDTH, WIDTH, seed=seed + 1))

    def forward(self, x):
        return self.mix @ x @ self.map


def test_influence_is_the_norm_of_the_jacobian():
    """By brute force, against many probes."""
    model, x = stack(Linear(1), Linear(5)), drawn(2, TOKENS, WIDTH)
    examined = examine(model, x)
    (flow,) = examined.flows
    layers = [LayerReport(n) for n in range(3)]
    probes = 600
    with torch.enable_grad():
        assert gradients(examined, flow, layers, probes) == ""
    jacobian = torch.autograd.functional.jacobian(examined.model, x[:1])[0, :, :, 0]  # (T, D, T, D)
    for name, place in (("first", 0), ("middle", TOKENS // 2), ("last", TOKENS - 1)):
        wanted = float(jacobian[:, :, place].norm()) / WIDTH**0.5
        assert getattr(layers[0], f"influence_{name}") == pytest.approx(wanted, rel=0.1)
        assert getattr(layers[2], f"influence_{name}") == pytest.approx(1.0, rel=0.1)


def test_gradients_are_those_of_autograd():
    model, x = stack(Attends(), Attends()), drawn(2, TOKENS, WIDTH)
    examined = examine(model, x)
    (flow,) = examined.flows
    with torch.enable_grad():
        exits, heads, last = forward(examined, flow)
        squares = differentiate(exits, heads, last, flow, 1)
    probe = torch.randn(last.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    start = x.clone().requires_grad_()
    (wanted,) = torch.autograd.grad((model(start) * probe).sum(), start)
    assert squares["states"][0] == pytest.approx(wanted.pow(2).sum(-1), rel=1e-9)


def test_interventions_are_what_their_names_say():
    """Each against a module that is written that way."""
    x = drawn(3, TOKENS, WIDTH)
    examined = examine(stack(Linear(1), Linear(5), Linear(9)), x)
    (flow,) = examined.flows
    by_name = {one.name: one.last for one in interventions(examined, flow)}

    def by_hand(step):
        state = x
        for layer in examined.model:
            state = step(state, layer.branch(state)).detach()
        return relative_residual(state).mean().item()

    def norm(y):
        return y / y.pow(2).mean(-1, keepdim=True).sqrt()

    assert by_name["branches times 1/sqrt(3)"] == pytest.approx(by_hand(lambda s, f: s + f / 3**0.5), rel=1e-9)
    assert by_name["branches times 0.1, as behind a gate"] == pytest.approx(by_hand(lambda s, f: s + f / 10), rel=1e-9)
    assert by_name["a norm after each branch"] == pytest.approx(by_hand(lambda s, f: s + norm(f)), rel=1e-9)
    assert by_name["a norm after each addition"] == pytest.approx(by_hand(lambda s, f: norm(s + f)), rel=1e-9)
    assert by_name["weights of the layers times 0.5"] == pytest.approx(by_hand(lambda s, f: s + f / 4), rel=1e-9)
    with multiplied(matrices_of_layers(examined, flow), 0.5):
        assert torch.equal(examined.model[0].branch.mix, drawn(TOKENS, TOKENS, seed=1) / 2)
    assert torch.equal(examined.model[0].branch.mix, drawn(TOKENS, TOKENS, seed=1))


class Collapses(nn.Module):
    """All that differs is taken away, in the middle layer alone."""

    def forward(self, x):
        return -0.999 * (x - x.mean(1, keepdim=True))


def test_the_layer_and_the_part_that_collapse_are_named():
    report = report_of(stack(Uniform(), Collapses(), Uniform()))
    assert report.worst == 2
    words = " ".join([report.result("rank-kept").sentence, *explain_rank(report)])
    assert "tokens become one vector" in words and "Layer 2 loses most" in words and "without branch" in words
    assert report.without[0].last == pytest.approx(report_of(stack(Uniform(), Uniform())).layers[-1].residual, rel=1e-9)
    helps = next(one for one in report.interventions if one.name.startswith("branches times 0.1"))
    assert f"{helps.last:.2f}" in words


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("residual_last < 0.1", True),
        ("residual_last>=0.1", False),
        ("residual[1] > 0.1", True),
        ("residual[-1] < 1e-2", True),
        ("norm_min < 0", False),
        ("entropy_max > 1.5", True),
        ("distinct_last <= 1", True),
    ],
)
def test_conditions_compare_quantities(text, holds):
    assert condition(text).holds(report_of(stack(Uniform(), Collapses()), changes=False)) is holds


def test_a_condition_that_cannot_be_read_says_what_to_write():
    with pytest.raises(RankfallError, match="write a quantity, one of < <= > >=, and a number"):
        condition("residual_last")
    with pytest.raises(RankfallError, match="did you mean 'residual_last'"):
        condition("residul_last < 1")


def test_assert_keeps_rank_says_the_table():
    x = drawn(2, TOKENS, WIDTH)
    assert_keeps_rank(stack(Uniform(), Uniform()), x, at_least=0.1)
    with pytest.raises(AssertionError, match="the residual of the last layer is below") as caught:
        assert_keeps_rank(stack(Uniform(), Collapses()), x, at_least=0.1)
    assert "layer   residual" in str(caught.value) and "Layer 2 loses most" in str(caught.value)
    with pytest.raises(RankfallError, match="at_least is 2"):
        assert_keeps_rank(stack(Uniform(), Uniform()), x, at_least=2)
