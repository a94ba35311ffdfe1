"""Check token identifiability: nearest neighbours against loops, probes against what they must recover, and intervals."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from rankfall.identity.probes import Recipe, least_squares, recover
from rankfall.identity.tokens import Sentences, estimate_rate, nearest_shares, token_rates, wilson
from rankfall.measure.context import Uninterrupted
from rankfall.random_streams import stream

RECIPES = Recipe(epochs=2, batch=64), Recipe(epochs=2, batch=64, hidden=8)


def drawn(*shape: int, name: str = "") -> Tensor:
    return torch.from_numpy(stream(0, "test", name).normal(size=shape))


def sentences(
    seed: int = 0, *, turn: bool = True, words: int = 30, positions: bool = False, length: int = 6
) -> Sentences:
    """Forty sentences; layer 1 is a rotation of the embeddings, layer 2 the same vector everywhere."""
    rng = stream(seed, "sentences")
    numbers = torch.from_numpy(rng.integers(words, size=(40, length)))
    table, place = drawn(words, 12, name="table"), drawn(length, 12, name="place") * positions
    x = table[numbers] + place
    turned = x @ torch.linalg.qr(drawn(12, 12, name=f"turn {seed}"))[0] if turn else x
    states = torch.stack([x, turned, torch.ones_like(x)]).float()

    def vocabulary() -> Iterator[Tensor]:
        return iter([(table + place[where]).float() for where in (1, 4)])

    return Sentences(seed, numbers, [0, 1, 2], states, [1, 4], vocabulary)


def rows_of(sentences: Sentences, transfer: bool = False) -> list[dict[str, Any]]:
    (rows,) = token_rates([sentences], *RECIPES, Uninterrupted(), transfer=transfer)
    return rows


def select(rows: list[dict[str, Any]], **labels: Any) -> dict[str, Any]:
    (row,) = [row for row in rows if all(row[name] == value for name, value in labels.items())]
    return row


@pytest.mark.parametrize("distance", ["cosine", "l2"])
def test_nearest_neighbours_are_those_of_a_loop(distance: str) -> None:
    mapped, candidates = drawn(3, 7, 4, name="mapped"), drawn(3, 7, 4, name="candidates")
    allowed = drawn(3, 7, name="allowed") > -0.5
    candidates[0, 3] = candidates[0, 5]  # two that are equally near
    shares = nearest_shares(mapped, candidates, torch.arange(7).expand(3, -1), distance, allowed)
    for s in range(3):
        for q in range(7):
            apart = {}
            for c in allowed[s].nonzero().flatten().tolist():
                x, y = mapped[s, q], candidates[s, c]
                apart[c] = float((x - y).norm() if distance == "l2" else 1 - x @ y / x.norm() / y.norm())
            nearest = [c for c, far in apart.items() if far < min(apart.values()) + 1e-12]
            assert float(shares[s, q]) == pytest.approx((q in nearest) / len(nearest))


def test_of_equally_near_candidates_each_gets_its_share() -> None:
    same = torch.ones(1, 5, 3, dtype=torch.float64)
    assert nearest_shares(same, same, torch.arange(5).unsqueeze(0), "l2").tolist() == [[0.2] * 5]
    query, moved = drawn(50, 1, 4, name="query"), 0.1 * drawn(50, 1, 4, name="moved")
    along = (moved * query).sum(-1, keepdim=True) / query.square().sum(-1, keepdim=True)
    mirrored = 2 * along * query - moved  # as far away; which of the two is nearer is rounding
    candidates = torch.cat([query + moved, query + mirrored, torch.zeros_like(query)], 1)
    assert (nearest_shares(query, candidates, torch.zeros(50, 1, dtype=torch.long), "l2") == 0.5).all()


@pytest.mark.parametrize("positions", [False, True])
def test_embeddings_are_their_own_nearest_neighbours(positions: bool) -> None:
    """Exactly 1 without duplicates. Where there are no positions, equal words of a sentence share what each of them gets."""
    it = sentences(positions=positions)
    rows = rows_of(it)
    tested = it.words[it.known :]
    alike = (tested.unsqueeze(-1) == tested.unsqueeze(-2)).sum(-1)
    for distance in ("cosine", "l2"):
        labels = {"layer": 0, "map": "naive", "distance": distance}
        assert select(rows, candidates="distinct", **labels)["rate"] == 1.0
        assert select(rows, candidates="vocabulary", **labels)["rate"] == 1.0
        wanted = 1.0 if positions else float((1 / alike.double()).mean())
        assert select(rows, candidates="sentence", **labels)["rate"] == pytest.approx(wanted, abs=1e-12)
    assert float((1 / alike.double()).mean()) < 0.99


def test_a_rotation_is_recovered_by_probes_and_not_by_the_naive_map() -> None:
    rows = rows_of(sentences())
    for distance, candidates in product(("cosine", "l2"), ("distinct", "vocabulary")):
        labels = {"layer": 1, "distance": distance, "candidates": candidates}
        for name, loss in product(("linear", "mlp"), ("cosine", "l2")):
            assert select(rows, map=name, loss=loss, **labels)["rate"] == 1.0
        assert select(rows, map="naive", **labels)["rate"] < 0.5


def test_equal_states_are_told_apart_by_chance_alone() -> None:
    """All tokens of a sentence are mapped to one vector, whose nearest candidate is right for one token."""
    rows = [row for row in rows_of(sentences(positions=True)) if (row["layer"], row["candidates"]) == (2, "sentence")]
    assert {row["map"] for row in rows} == {"naive", "linear", "mlp"}
    assert [row["rate"] for row in rows] == [row["chance"] for row in rows] == pytest.approx([1 / 6] * len(rows))


def test_the_position_alone_is_enough_where_embeddings_are_positions() -> None:
    it = sentences(positions=True)
    only = Sentences(0, it.words, it.layers, drawn(6, 12, name="only").float().expand(3, 40, 6, 12), [], it.vocabulary)
    rows = rows_of(only)
    assert select(rows, map="position", candidates="sentence", distance="l2")["rate"] == 1.0
    row = select(rows_of(it), map="position", candidates="vocabulary", distance="l2")
    assert row["rate"] < 0.4 and row["layer"] is None


def test_maps_of_another_layer_are_asked_for_too() -> None:
    rows = [row for row in rows_of(sentences(), transfer=True) if row["trained_layer"] not in (None, row["layer"])]
    assert {(row["trained_layer"], row["layer"], row["map"]) for row in rows} == {
        (trained, layer, name) for trained, layer in ((1, 2), (2, 1)) for name in ("linear", "mlp")
    }


def test_the_start_is_the_least_squares_map() -> None:
    """By another route: the normal equations with a column of ones; many tokens, so the smallest ridge is chosen."""
    x, y = drawn(400, 5, name="x"), drawn(400, 5, name="y")
    y = y * 1e-3 + x @ drawn(5, 5, name="map") + 3
    start = least_squares((x[:300], y[:300]), (x[300:], y[300:]))
    ones = torch.cat([x, torch.ones(400, 1)], 1)
    wanted = ones @ torch.linalg.lstsq(ones[:300], y[:300]).solution
    torch.testing.assert_close((x - start.mean) @ start.basis @ start.slope + start.offset, wanted, atol=1e-4, rtol=0)


class Stopping:
    """Keeps each state; stops once at a step."""

    def __init__(self, stop: int) -> None:
        self.stop, self.states = stop, {}

    def load(self, name: str) -> Any:
        return self.states.get(name)

    def after_step(self, name: str, step: int, state: Any) -> None:
        if step == self.stop:
            self.states[name] = {key: value.clone() for key, value in state().items()}
            self.stop = -1
            raise InterruptedError


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_stopped_probes_go_on_bit_for_bit(stop: int) -> None:
    source, recipe = sentences().source, Recipe(epochs=2, batch=64, hidden=4)
    whole = recover([source], {"mlp": recipe}, Uninterrupted())["mlp"]
    checkpoint = Stopping(stop)
    with pytest.raises(InterruptedError):
        recover([source], {"mlp": recipe}, checkpoint)["mlp"]
    again = recover([source], {"mlp": recipe}, checkpoint)["mlp"]
    assert [probe.epoch for probe in again.probes] == [probe.epoch for probe in whole.probes]
    for ours, theirs in zip(again.stacks[0].parameters(), whole.stacks[0].parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_probes_do_not_depend_on_how_many_memory_admits_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    source, recipe = sentences().source, Recipe(epochs=2, batch=64, hidden=4)
    whole = recover([source, source], {"mlp": recipe}, Uninterrupted())["mlp"]
    one = 28 * whole.stacks[0].slope[0].numel() * 2
    monkeypatch.setattr("rankfall.identity.probes.STACK_BYTES", one * 5)
    parted = recover([source, source], {"mlp": recipe}, Uninterrupted())["mlp"]
    assert len(whole.stacks) == 1 < len(parted.stacks)
    assert [probe.epoch for probe in parted.probes] == [probe.epoch for probe in whole.probes]
    for member, probe in enumerate(whole.probes):
        states = source.states[probe.layer]
        assert torch.equal(whole.map(member, states), parted.map(member, states))


@given(st.integers(1, 400), st.integers(0, 400))
def test_wilson_solves_its_equation(count: int, right: int) -> None:
    rate = min(right, count) / count
    for end in wilson(rate, count):
        if 0 < end < 1:
            assert abs(rate - end) == pytest.approx(1.96 * (end * (1 - end) / count) ** 0.5, rel=1e-3, abs=1e-9)


def test_tokens_that_stand_and_fall_with_their_sentence_count_as_one() -> None:
    asked = torch.full((20,), 50)
    right = torch.where(torch.arange(20) < 15, 50.0, 0.0)
    rate, low, high = estimate_rate(right, asked)
    assert rate == 0.75
    assert (low, high) == pytest.approx(wilson(0.75, 19))  # n - 1, as an unbiased variance has it
    assert estimate_rate(asked.double(), asked) == (1.0, *wilson(1.0, 1000))
    assert estimate_rate(right[[0, 19]], asked[:2]) == (0.5, *wilson(0.5, 1.0))  # of two, one
