"""Numbers of states and attention have known answers, or are computed here by another way. Weights of queries and keys are found by many
names, thirds of joint matrices are the right ones, and what is not known has a reason."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from rankfall.rank.residual import relative_residual
from rankfall.rank.spectrum import effective_rank
from rankfall.watch.attention import AttentionListener
from rankfall.watch.gradients import query_key_weights, squared_norm
from rankfall.watch.statistics import STATES, WEIGHTS, effective_ranks, state_values, weight_values

DOUBLE = {"dtype": torch.float64}


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), **DOUBLE)


def state_numbers(x, real):
    """Values by name, and effective ranks of the first samples."""
    values, kept = state_values(x, real)
    return dict(zip(STATES, values)) | {"effective_rank": effective_ranks(kept)}


def weight_numbers(weights, rows, real, scores=None):
    """Values (S,) by name, averaged over heads."""
    scores = weights.log() if scores is None else scores
    return dict(zip(WEIGHTS, weight_values(weights, rows, real, scores).mean(-1)))


def test_states_have_the_residual_of_the_rank_study():
    x = random(3, 5, 4).float()
    result = state_numbers(x, None)
    assert torch.allclose(result["residual"], relative_residual(x.double()), rtol=1e-6)
    assert torch.allclose(result["norm"], x.double().square().sum(-1).mean(-1).sqrt(), rtol=1e-6)
    assert torch.allclose(result["effective_rank"], effective_rank(x.double()), rtol=1e-9)
    values = torch.linalg.svdvals(x.double()).square()
    assert torch.allclose(result["participation_ratio"], values.sum(-1) ** 2 / values.square().sum(-1), rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("spread", [1.0, 1e-3, 1e-5])
def test_residuals_keep_their_digits_near_collapse_and_at_any_size(scale, spread):
    x = ((random(1, 1, 64) + spread * random(4, 32, 64, seed=1)) * scale).float()
    result = state_numbers(x, None)
    assert torch.allclose(result["residual"], relative_residual(x.double()), rtol=2e-6, atol=0)
    assert torch.allclose(result["norm"], x.double().square().sum(-1).mean(-1).sqrt(), rtol=1e-6, atol=0)
    assert not result["floor"].any()


def test_large_states_are_looked_at_a_sample_at_a_time(monkeypatch):
    x, real = random(5, 6, 4).float(), torch.ones(5, 6, dtype=torch.bool)
    whole = state_numbers(x, real)
    monkeypatch.setattr("rankfall.watch.statistics.MOST_NUMBERS", 50)
    parts = state_numbers(x, real)
    assert all(torch.allclose(parts[name], values, rtol=1e-14) and len(values) == 5 for name, values in whole.items())


def test_padding_is_as_if_it_were_not_there():
    x, real = random(2, 5, 4), torch.tensor([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]]).bool()
    result, alone = state_numbers(x, real), [state_numbers(x[:1, :3], None), state_numbers(x[1:, 2:], None)]
    for name, values in result.items():
        assert torch.allclose(values, torch.cat([one[name] for one in alone]), rtol=1e-9)
        assert torch.allclose(state_numbers(x[:1], real[:1])[name], alone[0][name], rtol=1e-9)


def test_effective_ranks_of_large_states_are_of_fewer_samples_and_tokens():
    x = random(8, 600, 530)
    result = state_numbers(x, None)["effective_rank"]
    rows = torch.linspace(0, 599, 512, dtype=torch.float64).round().long()
    assert result.item() == pytest.approx(effective_rank(x[0, rows]).item())
    small = state_numbers(x[:, :200], None)["effective_rank"]
    assert torch.allclose(small, effective_rank(x[:, :200])) and len(small) == 8


def test_what_has_no_residual_is_no_number():
    one = state_numbers(random(2, 1, 4), None)
    assert one["residual"].isnan().all() and one["participation_ratio"].isnan().all() and one["norm"].isfinite().all()
    bad = state_numbers(torch.full((1, 3, 4), math.nan), None)
    assert bad["broken"].all() and all(bad[name].isnan().all() for name in ("residual", "norm", "effective_rank"))
    assert state_numbers(torch.ones(1, 3, 4), None)["residual"].item() == 0


def brute(weights, real, causal):
    """Entropy, largest weight and weight on the first token, by loops. weights (H, T, T)"""
    tokens = [n for n in range(len(real)) if real[n]]
    rows = tokens[1:] if causal else tokens
    logs = [[-sum(a * math.log(a) for a in head[n] if a > 0) for n in rows] for head in weights.tolist()]
    most = [[max(head[n]) for n in rows] for head in weights.tolist()]
    first = [[head[n][tokens[0]] for n in tokens[1:]] for head in weights.tolist()]
    return [sum(map(sum, values)) / sum(map(len, values)) for values in (logs, most, first)]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", ["no", "right", "left"])
def test_attention_numbers_are_those_of_loops(causal, padded):
    real = torch.ones(2, 6, dtype=torch.bool)
    real[0, {"no": slice(0, 0), "right": slice(4, 6), "left": slice(0, 2)}[padded]] = False
    seen = real[:, None, None] & (torch.ones(6, 6).tril().bool() if causal else torch.ones(6, 6).bool())
    weights = torch.softmax(random(2, 3, 6, 6).masked_fill(~seen, -1e30), -1)
    result = weight_numbers(weights, torch.arange(6), real)
    for sample in range(2):
        wanted = brute(weights[sample], real[sample], causal)
        got = [result[name][sample].item() for name in ("entropy", "largest_share", "first_share")]
        assert got == pytest.approx(wanted)
        assert result["causal"][sample].item() == causal


def listened(function, batch=2, tokens=6, samples=2, real=None):
    listener = AttentionListener(batch, tokens, samples, real)
    with listener:
        function()
    values = listener.values()
    return None if values is None else dict(zip(WEIGHTS, values.mean(-1)))


@pytest.mark.parametrize("form", ["plain", "causal", "float mask", "bool mask", "grouped", "scale", "dropout"])
def test_fused_attention_has_the_numbers_of_its_weights(form):
    q, k, v = random(2, 4, 6, 8), random(2, 2 if form == "grouped" else 4, 6, 8, seed=1), random(2, 4, 6, 8, seed=2)
    masks = {"float mask": random(2, 1, 6, 6, seed=3), "bool mask": random(6, 6, seed=4).add(torch.eye(6) * 9) > 0}
    bias, options = masks.get(form), {"causal": {"is_causal": True}, "grouped": {"enable_gqa": True}}
    options |= {"scale": {"scale": 0.9}, "dropout": {"dropout_p": 0.0}}
    v = v[:, :2] if form == "grouped" else v
    result = listened(lambda: F.scaled_dot_product_attention(q, k, v, bias, **options.get(form, {})))
    scores = q @ k.repeat_interleave(4 // k.shape[1], 1).mT * (0.9 if form == "scale" else 8**-0.5)
    if form == "causal":
        scores = scores.masked_fill(~torch.ones(6, 6).tril().bool(), -torch.inf)
    if bias is not None:
        scores = scores + bias if bias.dtype != torch.bool else scores.masked_fill(~bias, -torch.inf)
    wanted = weight_numbers(torch.softmax(scores, -1), torch.arange(6), None, scores)
    for name, values in wanted.items():
        assert torch.allclose(result[name], values), name


def test_softmax_is_heard_in_each_shape():
    weights = torch.softmax(random(2, 3, 6, 6), -1)
    wanted = weight_numbers(weights, torch.arange(6), None)
    logits = weights.log()
    four = listened(lambda: logits.softmax(-1))
    three = listened(lambda: torch.softmax(logits.flatten(0, 1), 2))
    heads = listened(lambda: [torch.softmax(logits[:, head], -1) for head in range(3)])
    for name in WEIGHTS:
        assert all(torch.allclose(result[name], wanted[name]) for result in (four, three, heads)), name


def test_a_softmax_over_something_else_is_not_heard():
    assert listened(lambda: random(2, 6, 9).softmax(-1)) is None  # experts
    assert listened(lambda: random(2, 3, 6, 6).softmax(-2)) is None
    q, k = random(2, 3, 6, 4), random(2, 3, 9, 4)
    assert listened(lambda: F.scaled_dot_product_attention(q, k, k)) is None


def test_long_attention_is_looked_at_in_a_few_rows():
    q = random(1, 1, 600, 4)
    result = listened(lambda: F.scaled_dot_product_attention(q, q, q, is_causal=True), 1, 600, 1)
    scores = (q @ q.mT / 2).masked_fill(~torch.ones(600, 600).tril().bool(), -torch.inf)
    rows = torch.linspace(0, 599, 109, dtype=torch.float64).round().long()
    wanted = weight_numbers(torch.softmax(scores, -1)[:, :, rows], rows, None)
    assert result["causal"].item() == 1
    for name in ("entropy", "largest_share", "first_share"):
        assert result[name].item() == pytest.approx(wanted[name].item())


def block(**parts):
    """Return a module with gradients that count up, so that each entry is known."""
    module = nn.Module()
    for name, shape in parts.items():
        weight = nn.Parameter(torch.zeros(shape))
        weight.grad = torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape)
        *path, last = name.split("__")
        here = module
        for part in path:
            if not hasattr(here, part):
                here.add_module(part, nn.Module())
            here = getattr(here, part)
        here.register_parameter(last, weight)
    return module


def gradient_norm(parts, scale=1.0):
    square, reason = squared_norm(parts, scale)
    return None if square is None else square.sqrt().item(), reason


def norms(module, **options):
    weights = query_key_weights(module, **options)
    return [gradient_norm(parts)[0] if parts else None for parts in (weights.queries, weights.keys)]


def norm(*values):
    return pytest.approx(math.sqrt(sum(value**2 for value in values)))


@pytest.mark.parametrize(
    "names",
    [
        ("attn__q_proj", "attn__k_proj"),
        ("attention__self__query", "attention__self__key"),
        ("wq", "wk"),
        ("to_q", "to_k"),
    ],
    ids=lambda names: names[0],
)
def test_weights_by_their_names(names):
    query, key = (f"{name}__weight" for name in names)
    module = block(**{query: (2, 2), key: (1, 2), "v_proj__weight": (9, 9), "query_norm__weight": (5,)})
    assert norms(module) == [norm(0, 1, 2, 3), norm(0, 1)]


@pytest.mark.parametrize(
    "name", ["self_attn__in_proj_weight", "attn__c_attn__weight", "attn__qkv__weight", "Wqkv__weight"]
)
def test_thirds_of_a_joint_matrix(name):
    assert norms(block(**{name: (6, 2)})) == [norm(0, 1, 2, 3), norm(4, 5, 6, 7)]


def test_thirds_of_columns_where_weights_are_turned():
    conv1d = pytest.importorskip("transformers.pytorch_utils").Conv1D
    module = nn.ModuleDict({"c_attn": conv1d(6, 2)})
    module["c_attn"].weight.grad = torch.arange(12.0).reshape(2, 6)
    assert norms(module) == [norm(0, 1, 6, 7), norm(2, 3, 8, 9)]


def test_attention_to_something_else_is_left_out():
    module = block(
        self_attn__q_proj__weight=(1, 2),
        self_attn__k_proj__weight=(1, 2),
        encoder_attn__q_proj__weight=(3, 3),
        multihead_attn__in_proj_weight=(6, 2),
    )
    assert norms(module) == [norm(0, 1), norm(0, 1)]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"query_key_value__weight": (6, 2)}, "head by head: say queries= and keys= as functions"),
        ({"qkv_proj__weight": (4, 2)}, "of unknown sizes: say queries="),
        ({"mixer__in_proj__weight": (6, 2)}, "no weights of queries and keys are known by their names"),
    ],
)
def test_what_is_not_known_has_a_reason(parts, words):
    weights = query_key_weights(block(**parts))
    assert weights.queries == weights.keys == () and words in weights.reason
