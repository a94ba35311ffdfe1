"""Check attention identifiability: null dimensions, second distributions, intervals and effective attention against known answers."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rankfall.identity import nullspace, witness
from rankfall.identity.attention import FIRST_TOKEN, _quantities, head_rows
from rankfall.identity.nullspace import (
    column_space,
    effective_attention,
    group_rows,
    null_dimension,
    null_dimension_simplex,
    outlier_channels,
    rank,
)
from rankfall.identity.views import AttentionView

DTYPE = torch.float64


def drawn(
    tokens: int, *, width: int = 12, head: int = 4, causal: bool = False, seed: int = 0, spread: float = 1.0
) -> AttentionView:
    """Three samples and two heads with normal E, W_V, H, and softmax weights of queries and keys as wide as a head."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=DTYPE)

    inputs = normal(3, tokens, width)
    values = torch.einsum("btd,hdv->bhtv", inputs, normal(2, width, head) / width**0.5)
    allowed = torch.ones(tokens, tokens, dtype=torch.bool)
    allowed = allowed.tril() if causal else allowed
    logits = spread * normal(3, 2, tokens, head) @ normal(3, 2, head, tokens) / head**0.5
    weights = logits.masked_fill(~allowed, -torch.inf).softmax(-1)
    output = normal(2, head, width) / head**0.5
    kinds = torch.arange(tokens).clamp(max=3).expand(3, tokens)
    return AttentionView(1, inputs, weights, values, output, normal(width), head, allowed, "", kinds)


@pytest.mark.parametrize(
    ("tokens", "null", "simplex"), [(3, 0, 0), (4, 0, 0), (5, 1, 0), (6, 2, 1), (8, 4, 3), (16, 12, 11)]
)
def test_null_dimensions_around_the_head_width(tokens: int, null: int, simplex: int) -> None:
    """max(n - d_v, 0) and max(n - d_v - 1, 0), for random heads; by an SVD of the whole of T and of [T, 1] as a second way."""
    view = drawn(tokens)
    rows = group_rows(view)
    assert (null_dimension(rows, 1e-10) == null).all()
    assert (null_dimension_simplex(rows, 1e-10) == simplex).all()
    whole = view.map_values()
    with_ones = torch.cat([whole, torch.ones(3, 2, tokens, 1, dtype=DTYPE)], -1)
    assert (tokens - torch.linalg.matrix_rank(whole, rtol=1e-10) == null).all()
    assert (tokens - torch.linalg.matrix_rank(with_ones, rtol=1e-10) == simplex).all()


def test_rank_falls_with_the_tolerance() -> None:
    view = drawn(8)
    values = torch.linalg.qr(view.values).Q * torch.tensor([1.0, 1e-4, 1e-8, 1e-12], dtype=DTYPE)
    rows = group_rows(replace(view, values=values, output=torch.eye(4, 12, dtype=DTYPE).expand(2, 4, 12)))
    ranks = [int(rank(rows, tolerance)[0, 0, 0]) for tolerance in (1e-3, 1e-6, 1e-10, 1e-13)]
    assert ranks == [1, 2, 3, 4]
    assert (rows.columns(1e-13).norm(dim=-2)[0, 0, 0] > 0.5).all()  # 1e-12 of the largest is no rounding


@given(st.integers(3, 14), st.booleans(), st.integers(0, 10**6), st.sampled_from([0.3, 1.0, 4.0]))
@settings(max_examples=40, deadline=None)
def test_a_second_distribution_has_the_same_output(tokens: int, causal: bool, seed: int, spread: float) -> None:
    rows = group_rows(drawn(tokens, causal=causal, seed=seed, spread=spread))
    moved = witness.find_farthest(rows)
    assert (moved >= 0).all() and (moved[~rows.allowed[:, None].expand_as(moved)] == 0).all()
    assert float(witness.output_error(rows, moved).max()) < 1e-10
    assert float((moved - rows.weights).sum(-1).abs().max()) < 1e-12
    apart, free = witness.distance(moved, rows.weights), null_dimension_simplex(rows, 1e-10)
    assert ((apart > 0) == (free > 0).unsqueeze(-1)).all()  # another one exactly where there are directions for it


def one_row(tokens: int, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    rows = group_rows(drawn(tokens, **options))
    return rows.weights[0, 0, -1, -1].numpy(), column_space(rows)[0, 0, -1].numpy()


@pytest.mark.parametrize("tokens", [4, 6, 9, 16])
def test_intervals_contain_the_weight_and_their_ends_are_attained(tokens: int) -> None:
    row, basis = one_row(tokens)
    for entry in range(tokens):
        found = witness.interval(row, basis, entry)
        assert found is not None
        low, high = (end[entry] for end in found)
        assert low - 1e-12 <= row[entry] <= high + 1e-12
        for attained in found:
            assert (attained >= 0).all()
            assert np.abs(basis.T @ (attained - row)).max() < 1e-10
            assert attained.sum() == pytest.approx(row.sum(), abs=1e-12)
        assert (high - low > 1e-6) == (tokens > 5)


def test_with_one_direction_intervals_and_the_farthest_point_are_those_of_a_line() -> None:
    """n = d_v + 2: all distributions lie on a segment, whose ends are known without a program."""
    row, basis = one_row(6)
    free = np.linalg.svd(basis, full_matrices=True)[0][:, -1]
    back, ahead = (-row / free)[free < 0].min(), (row / free)[free > 0].min()
    ends = (row + back * free, row - ahead * free)
    for entry in range(6):
        found = witness.interval(row, basis, entry)
        assert found is not None
        expected = sorted(end[entry] for end in ends)
        assert [end[entry] for end in found] == pytest.approx(expected, abs=1e-11)
    far = witness.farthest(row, basis)
    assert far is not None
    assert np.abs(far - row).sum() == pytest.approx(max(np.abs(end - row).sum() for end in ends), abs=1e-11)
    rows = group_rows(drawn(6))
    stepped = witness.distance(witness.find_farthest(rows), rows.weights)[0, 0, -1, -1]
    assert 2 * float(stepped) == pytest.approx(np.abs(far - row).sum(), rel=1e-9)  # both directions of a line are tried


def test_effective_attention_is_the_projection_and_gives_the_same_output() -> None:
    for tokens in (3, 4, 6, 16):
        view = drawn(tokens)
        rows = group_rows(view)
        found = effective_attention(rows, 1e-10)
        t = view.map_values()
        by_hand = view.weights @ t @ torch.linalg.pinv(t, rtol=1e-10)
        torch.testing.assert_close(found[:, :, 0], by_hand, rtol=1e-9, atol=1e-11)
        assert float(nullspace.identity_error(rows, found).max()) < 1e-12
        if tokens <= 4:
            torch.testing.assert_close(found, rows.weights, rtol=1e-9, atol=1e-11)
        expected = np.corrcoef(view.weights[1, 0].flatten(), by_hand[1, 0].flatten())[0, 1]
        assert float(nullspace.correlation(rows, found)[1, 0]) == pytest.approx(expected, abs=1e-10)
        numbers = {name: value for name, value, _ in _quantities(view, rows, 2, 0, False)}
        torch.testing.assert_close(numbers["effective_sum"], by_hand.sum(-1).mean(-1).T, rtol=1e-9, atol=1e-11)
        below = (by_hand < -1e-12).double().mean((-1, -2)).T
        torch.testing.assert_close(numbers["effective_below_zero"].double(), below, rtol=1e-6, atol=1e-7)


def test_effective_attention_of_a_masked_row_stays_on_its_tokens() -> None:
    """For row i it is the projection with the rows of T up to i alone, not with those after it."""
    view = drawn(9, causal=True)
    rows = group_rows(view, masked=9)
    found = effective_attention(rows, 1e-10)
    t = view.map_values()[0, 1]
    for group, place in enumerate(rows.places[:, 0].tolist()):
        part = t[: place + 1]
        by_hand = view.weights[0, 1, place, : place + 1] @ part @ torch.linalg.pinv(part, rtol=1e-10)
        torch.testing.assert_close(found[0, 1, group, 0, : place + 1], by_hand, rtol=1e-9, atol=1e-11)
        assert (found[0, 1, group, 0, place + 1 :] == 0).all()


def test_scores_of_a_head_s_width_are_recognised() -> None:
    """Log-weights of a softmax of q k^T have the rank of q k^T; those of a second distribution have not (Bhardwaj et al. 2021)."""
    view = drawn(12, head=4)
    rows = group_rows(view)
    assert (witness.score_rank(view.weights) == 4).all()
    moved = witness.find_farthest(rows, extent=0.5)
    assert (witness.score_rank(moved[:, :, 0]) > 4).all()
    assert witness.free_block(view.allowed) == (slice(0, 12), slice(0, 12))
    block = witness.free_block(view.allowed.tril())
    assert block == (slice(6, 12), slice(0, 7)) and bool(view.allowed.tril()[block].all())
    assert witness.free_block(view.allowed.tril().triu(-3)) is None


def test_shares_entropy_and_the_first_token() -> None:
    view = drawn(6)
    rows = group_rows(view)
    found = nullspace.shares_by_kind(rows.weights, view.kinds)
    torch.testing.assert_close(found[..., 0], view.weights[..., 0].mean(-1), rtol=1e-12, atol=0)
    torch.testing.assert_close(found[..., 3], view.weights[..., 3:].sum(-1).mean(-1), rtol=1e-12, atol=0)
    torch.testing.assert_close(nullspace.first_mass(rows), view.weights[:, :, 1:, 0].mean(-1), rtol=1e-12, atol=0)
    by_hand = -(view.weights * view.weights.log()).sum(-1).mean(-1)
    torch.testing.assert_close(nullspace.entropy(rows), by_hand, rtol=1e-12, atol=0)


def test_without_the_first_token_it_is_as_if_it_were_not_there() -> None:
    view = drawn(7)
    without = group_rows(view, without_first=True)
    assert without.sizes.tolist() == [6] and (null_dimension(without, 1e-10) == 2).all()
    rest = view.weights[:, :, 1:, 1:]
    torch.testing.assert_close(without.weights[:, :, 0, :, 1:], rest / rest.sum(-1, keepdim=True), rtol=1e-12, atol=0)
    short = replace(view, values=view.values[:, :, 1:], weights=rest, allowed=view.allowed[1:, 1:])
    torch.testing.assert_close(without.svd[1], group_rows(short).svd[1], rtol=1e-10, atol=1e-12)


def test_outlier_channels_are_those_above_the_rule() -> None:
    states = drawn(8).inputs.clone()
    states[..., 5] *= 40
    assert outlier_channels(states).nonzero().flatten().tolist() == [5]


def test_rows_of_a_layer_do_not_depend_on_how_samples_are_divided() -> None:
    """But for the linear programs, which are solved for rows of the first part."""
    view = drawn(8)
    options = {"seed": 0, "entries": 0, "masked": 8, "left_out": ("nothing", FIRST_TOKEN)}
    parts = [
        replace(view, **{name: getattr(view, name)[part] for name in ("inputs", "weights", "values", "kinds")})
        for part in (slice(0, 2), slice(2, 3))
    ]
    for row, whole in zip(head_rows(parts, **options), head_rows([view], **options), strict=True):
        for key in ("attention_head", "left_out", "quantity", "kind", "tolerance"):
            assert row[key] == whole[key]
        if row["quantity"] in ("witness_score_rank", "score_rank", "outlier_channels"):
            continue
        assert row["count"] == whole["count"] and row["value_reason"] == whole["value_reason"]
        if row["value"] is not None and not row["quantity"].endswith("error"):
            assert row["value"] == pytest.approx(whole["value"], rel=1e-9, abs=1e-12)


def test_what_has_no_number_has_a_reason() -> None:
    view = drawn(6)
    rows = list(head_rows([replace(view, weights=view.weights - 0.2)], 0, 2, 8))
    assert all((row["value"] is None) == (row["value_reason"] is not None) for row in rows)
    reasons = {row["quantity"]: row["value_reason"] for row in rows if row["value_reason"]}
    assert reasons["distance"] == "weights are negative: no distribution"
    assert reasons["score_rank"] == "weights are zero: no softmax of finite scores"
