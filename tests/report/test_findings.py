"""Guards the sentences of a run: of one setting, ties as ties, seeds counted, chance beside numbers; crafted to say something wrong."""

from typing import Any

import pandas as pd
from score_rows import row

from rankfall.position.probe.shown import say_places
from rankfall.rank.orders.shown import say_orders
from rankfall.report.conform import conform
from rankfall.report.page.findings import findings, was_run
from rankfall.report.settings import find_setting

FASTEST, LEARNED, FOUND = (
    "Which architecture collapses fastest?",
    "What did they learn?",
    "Can a token still be found in the last layer?",
)


def said(*rows: dict[str, Any], setting: str = "") -> dict[str, str]:
    scores = conform("scorecard", list(rows)).to_pandas()
    given = find_setting(scores, setting, "test") if setting else None
    return {one.question: one.answer for one in findings({"scorecard": scores}.get, given)}


def residual(
    name: str, value: float, deviation: float = 0.001, order: float | None = None, **more: Any
) -> dict[str, Any]:
    one = row(name, residual_last=value, residual_last__deviation=deviation, **more)
    return one | ({} if order is None else {"block_order": order, "block_order_reason": ""})


def lost(name: str, reason: str = "3 diverged of 3 seeds: loss not finite at step 3") -> dict[str, Any]:
    return row(name) | {"accuracy_of": 3, "accuracy_lost": reason, "accuracy_reason": reason, "done": 0}


def test_the_order_is_asked_before_the_residual() -> None:
    """Three that tied were one winner, and one of them was of order 1 where the others are of order 3."""
    near = {"residual_last__each": "0=0.06 1=0.0575 2=0.055"}
    text = said(
        residual("a", 0.057, order=3.0), residual("b", 0.0575, order=3.0, **near), residual("c", 0.0572, order=1.0)
    )[FASTEST]
    assert "the order of the block is highest in a and b: 3 (a small residual is cubed in every layer)." in text
    assert "The residual at the last layer is smallest in" in text


def test_one_architecture_wins_over_nobody() -> None:
    """A setting with one architecture had a fastest one, and so had one in which all have the same order."""
    alone = said(residual("a", 0.5, order=3.0))[FASTEST]
    assert "the order of the block is 3 (a small residual is cubed in every layer) in a." in alone
    assert "The residual at the last layer is 0.500 ± 0.001 in a" in alone
    some = said(residual("a", 0.5, order=1.0), residual("b", 0.1, order=1.0), residual("c", 0.2))[FASTEST]
    assert "the order of the block is 1 (a small residual is multiplied by a factor in every layer) in a and b," in some
    assert "among 2 of 3 whose order is known. The residual at the last layer is smallest in b (0.100" in some


def test_without_orders_the_law_comes_before_the_residual_and_rounding_is_no_number() -> None:
    """There was "a law of a and b", without a word of which falls faster; a residual that is rounding was 0.000."""
    laws = (("a", -5.0), ("b", -1e6))
    text = said(*(row(name, log_residual=value, log_residual__deviation=0.0) for name, value in laws))[FASTEST]
    assert "is smallest in b (10^-1,000,000)" in text
    text = said(residual("a", 1e-16, 1e-17, residual_last__floor=1.0), residual("b", 0.5))[FASTEST]
    assert "is smallest in a (floor)" in text


def test_no_sentence_mixes_settings() -> None:
    """The network of another task or depth stood first, or was counted."""
    here = [residual("a", 0.5), residual("b", 0.9)]
    there = [row(name, depth=12, residual_last=0.001) for name in ("a",)]
    other = row("c", residual_last=0.0) | {"task": "circle", "setting": "circle, long, depth 6"}
    for rows in ([*here, *there, other], [other, *there, *here]):
        text = said(*rows)[FASTEST]
        assert text.startswith(
            "At sorting, long, depth 6 (of 3 settings, one with most architectures): no order of a block is known."
        )
        assert (
            "smallest in a (0.500 ± 0.001)" in text
            and "At least 0.5 is left in 2 of 2 without skip connections." in text
        )


def test_chance_is_said_and_who_is_at_it() -> None:
    rows = [
        row("SAN", identity_rate=0.125, identity_rate__chance=0.125, identity_rate__deviation=0.0),
        row("worse", identity_rate=0.05, identity_rate__chance=0.125, identity_rate__deviation=0.01),
        row("full", identity_rate=0.99, identity_rate__chance=0.125, identity_rate__deviation=0.0),
    ]
    text = said(*rows)[FOUND]
    assert "most tokens in full (99%), least in worse (5% ± 1%) (means over 3 seeds)." in text
    assert (
        "A guess among the tokens of the sentence finds 12.5% (one in 8); SAN is at that; worse is below that." in text
    )


def test_each_seed_has_its_own_chance() -> None:
    """An accuracy above chance in each of its seeds was at chance: it was compared with the mean of chances, which vary more."""
    above = row("weak", accuracy=0.5, accuracy__each="0=0.43 1=0.51 2=0.57", accuracy__chance=0.45)
    assert "weak is at that" in said(above, row("b", accuracy=0.9, accuracy__chance=0.45))[LEARNED]
    above["accuracy_chance_each"] = "0=0.38 1=0.45 2=0.52"
    assert "weak is" not in said(above, row("b", accuracy=0.9, accuracy__chance=0.45))[LEARNED]


def test_one_seed_has_no_deviation_and_is_said() -> None:
    rows = [
        row(name, accuracy=value, accuracy__each=f"0={value}") | {"accuracy_seeds": 1, "accuracy_of": 1}
        for name, value in (("a", 0.5), ("b", 0.51))
    ]
    assert "test accuracy: b 51% and a 50% (one seed: not decided) (one seed)." in said(*rows)[LEARNED]


def test_seeds_that_are_lost_are_said() -> None:
    some = row("some", accuracy=0.5) | {"accuracy_seeds": 2, "accuracy_lost": "1 diverged of 3 seeds: loss not finite"}
    text = said(some, row("all", accuracy=0.9), lost("gone"))[LEARNED]
    assert "(means over 3 seeds; some 2)" in text
    assert "Seeds of some are lost: 1 diverged of 3 seeds: loss not finite." in text
    assert "Seeds of gone are lost: 3 diverged of 3 seeds: loss not finite at step 3." in text
    assert LEARNED not in said(lost("a"), lost("b"))


def test_ties_at_both_ends_and_between() -> None:
    same = [row(name, accuracy=0.5, accuracy__each=each) for name, each in (("a", "0=0.4 1=0.6"), ("b", "0=0.6 1=0.4"))]
    assert "no architecture is ahead in" in said(*same)[LEARNED]
    chain = [
        row("a", accuracy=0.5, accuracy__each="0=0.4 1=0.5 2=0.6"),
        row("b", accuracy=0.58, accuracy__each="0=0.68 1=0.58 2=0.48"),
        row("c", accuracy=0.66, accuracy__each="0=0.56 1=0.67 2=0.75"),
    ]
    text = said(*chain)[LEARNED]
    assert "highest in b and c (58% to 66%, a tie), least in a and b (50% to 58%, a tie), which overlap" in text


def test_costs_are_ranked_where_their_intervals_do_not_overlap() -> None:
    """The same network had cost 53 or 37 ms, by what else the machine did, and was ranked by it."""
    low, high = ("0=5 1=5.1 2=5.2 3=5.1 4=5.3 5=5.2 6=9", "0=5.4 1=5.5 2=5.6 3=5.5 4=5.4 5=5.5 6=5.6")
    near = [row(name, cost_ms=5.2, cost_ms__each=each) for name, each in (("a", low), ("b", high))]
    assert (
        "no architecture is ahead in" in said(*near)["What does it cost?"]
    )  # the slow reading of a is above all of b's
    high = "0=9.4 1=9.5 2=9.6 3=9.5 4=9.4 5=9.5 6=9.6"
    apart = said(near[0], row("b", cost_ms=9.5, cost_ms__each=high))["What does it cost?"]
    assert "is largest in b (9.50 ms), least in a (5.20 ms)" in apart and "medians of" in apart


def test_a_tie_of_rounding_noise_is_said_to_be_one() -> None:
    """2e-11 and 1e-16 tied "within their deviation", which was that of rounding."""
    noise = (("a", 2e-11, 0.67), ("b", 1e-16, 1.0))
    for order in (3.0, None):
        rows = [residual(name, value, 3e-11, order, residual_last__floor=floor) for name, value, floor in noise]
        text = said(*rows, residual("c", 0.5, 0.001, None if order is None else 1.0))[FASTEST]
        assert "; of their samples these are rounding noise of float64: 67% of a and 100% of b." in text
    assert "rounding" not in said(residual("a", 0.3, 0.2), residual("b", 0.31, 0.2))[FASTEST]


def test_kinds_of_attention_are_all_counted() -> None:
    base = {
        "block": "attention alone",
        "quantity": "res",
        "biases": True,
        "attention": "own",
        "position": "none",
        "sentinels": "none",
    }
    table = pd.DataFrame(
        [base | {"normaliser": str(k), "mask": None, "order": p} for k, p in enumerate((4.0, 3.0, 2.0, 1.0, 0.0, None))]
    )
    found, _ = say_orders({"orders": table}.get)
    assert "Of 6 kinds of attention layer 1 cube" in found and "Without position" not in found
    assert "2 have another order, and 1 have none" in found


def test_networks_that_were_not_trained_are_named_by_their_training() -> None:
    cells = {"task": "sorting", "architecture": "a", "seed": 0, "status": "done", "seconds": 1.0, "device": "cpu"}
    both = [{"training": "fresh", "epochs": 0}, {"training": "long", "epochs": 5}]
    table = pd.DataFrame([cells | one | {"processor": "one"} for one in both])
    assert "1 of them trained and the others left at their random initial weights (training fresh)" in was_run(table)


def test_what_no_training_can_teach_is_what_theory_says() -> None:
    """Networks at random weights that gave one row were said to be beyond teaching, where theory allows more."""
    table = pd.DataFrame(
        {"untrained_rows": [1, 1, 8], "theory_rows": pd.array([1, None, 8], dtype="Int64"), "tokens": 8}
    )
    found, _ = say_places({"probe": table}.get)
    assert "1 of 3 combinations" in found and "1 give" in found and "1 more do at random weights." in found
