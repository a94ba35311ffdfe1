"""Order of contraction, identity and attribution of any module: known answers, brute force, and what is refused."""

import pytest
import torch
import torch.nn.functional as F
from more_kinds import Skip
from torch import nn

from rankfall import attribution, order_of_contraction, token_identity
from rankfall.errors import RankfallError

WIDTH, TOKENS = 6, 5


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class Mixes(nn.Module):
    """M x, for a matrix of tokens."""

    def __init__(self, matrix):
        super().__init__()
        self.register_buffer("matrix", matrix)

    def forward(self, x):
        return self.matrix.to(x.dtype) @ x


class Attends(nn.Module):
    def __init__(self, causal=False):
        super().__init__()
        self.causal = causal
        self.maps = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x):
        q, k, v = (part(x) for part in self.maps)
        return F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)


class Layer(Skip):
    """With an MLP behind the branch."""

    def __init__(self, branch):
        super().__init__(branch)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 8), nn.GELU(), nn.Linear(8, WIDTH))

    def forward(self, x):
        x = super().forward(x)
        return x + self.mlp(x)


def test_each_branch_that_mixes_has_its_own_order():
    torch.manual_seed(0)
    model = nn.Sequential(Layer(Attends()), Layer(Attends(causal=True)), Layer(Mixes(drawn(TOKENS, TOKENS))))
    orders = order_of_contraction(model, drawn(3, TOKENS, WIDTH))
    assert list(orders) == ["0 branch", "1 branch", "2 branch"]
    assert [order.order for order in orders.values()] == pytest.approx([3, 1, 0], abs=0.02)
    assert all(order.method == "float64" and order.decades >= 1 for order in orders.values())
    assert "does not contract" in orders["2 branch"].reason


def test_attribution_of_a_linear_mixer_is_its_matrix():
    """x + M x has the blocks (1 + M)_ji times the identity."""
    first, second = drawn(TOKENS, TOKENS, seed=1), drawn(TOKENS, TOKENS, seed=2)
    found = attribution(
        nn.Sequential(Skip(Mixes(first)), Skip(Mixes(second))), drawn(2, TOKENS, WIDTH), directions=None
    )
    eye = torch.eye(TOKENS, dtype=torch.float64)
    for layer, whole in enumerate((eye, eye + first, (eye + second) @ (eye + first))):
        wanted = whole.abs() / whole.abs().sum(-1, keepdim=True)
        assert found.shares[layer, 0] == pytest.approx(wanted, rel=1e-9)
        assert found.own[layer] == pytest.approx(wanted.diagonal().mean().item(), rel=1e-9)
    assert found.tokens == list(range(TOKENS)) and found.note == "exact"


def test_attribution_is_that_of_the_whole_jacobian():
    torch.manual_seed(0)
    model, x = nn.Sequential(Layer(Attends()), Layer(Attends(causal=True))).double(), drawn(2, TOKENS, WIDTH)
    found = attribution(model, x, tokens=3, directions=None)
    assert found.tokens == [0, 2, 4]
    for sample in range(2):
        whole = torch.autograd.functional.jacobian(model, x[sample : sample + 1])[0, :, :, 0]  # (T, D, T, D)
        norms = whole.pow(2).sum((1, 3)).sqrt()[found.tokens]
        assert found.shares[-1, sample] == pytest.approx(norms / norms.sum(-1, keepdim=True), rel=1e-9)


def test_states_that_changed_places_are_not_their_own_tokens():
    """P x of a shift is nearest to the next token; a mean of all tells no token from another."""
    x, eye = drawn(3, TOKENS, WIDTH), torch.eye(TOKENS, dtype=torch.float64)
    shift, mean = eye.roll(1, 0), torch.full_like(eye, 1 / TOKENS)
    moved = token_identity(
        nn.Sequential(Skip(Mixes(0.1 * shift)), Skip(Mixes((eye + 0.1 * shift).inverse() @ shift - eye))), x
    )
    assert moved.cosine[:2] == moved.l2[:2] == [1.0, 1.0]
    lost = token_identity(nn.Sequential(Skip(Mixes(0.1 * mean)), Skip(Mixes(mean - eye))), x)
    assert lost.cosine[1] == 1.0 and lost.cosine[2] == lost.l2[2] == pytest.approx(1 / TOKENS)
    assert lost.chance == 1 / TOKENS


def test_of_several_streams_one_is_named():
    both = nn.Transformer(16, 2, 2, 2, 16, batch_first=True)
    inputs = (torch.randn(2, 5, 16), torch.randn(2, 4, 16))
    with pytest.raises(RankfallError, match=r"has 2 streams: stream must be one of '(en|de)coder', '(en|de)coder'$"):
        token_identity(both, inputs)
    with pytest.raises(RankfallError, match="there is no stream 'x'"):
        attribution(both, inputs, stream="x")
    assert token_identity(both, inputs, stream="decoder").chance == 1 / 4
    assert len(attribution(both, inputs, stream="encoder", tokens=2, directions=1).own) == 3
    assert {name.split()[0] for name in order_of_contraction(both, inputs)} == {"encoder", "decoder"}


def test_the_module_is_left_as_it_was():
    torch.manual_seed(0)
    model, x = nn.Sequential(Layer(Attends()), Layer(Attends())).train(), torch.randn(2, TOKENS, WIDTH)
    before, state = {name: value.clone() for name, value in model.named_parameters()}, torch.get_rng_state()
    model[0].mlp[0].weight.requires_grad_(False)
    attribution(model, x, tokens=2, directions=1)
    token_identity(model, x)
    order_of_contraction(model, x)
    assert torch.equal(state, torch.get_rng_state()) and model.training
    for name, value in model.named_parameters():
        assert torch.equal(before[name], value) and value.grad is None and value.dtype == torch.float32
        assert value.requires_grad == (name != "0.mlp.0.weight")
