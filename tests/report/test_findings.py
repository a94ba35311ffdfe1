"""Guards the findings of a run: of one setting, ties as ties, chance beside numbers, short; crafted to say something wrong."""

from pathlib import Path
from typing import Any

import pandas as pd
from score_rows import row

from rankfall.commands.run import read_findings
from rankfall.position.probe.shown import say_places
from rankfall.rank.orders.shown import say_orders
from rankfall.report import tables
from rankfall.report.conform import conform
from rankfall.report.page.findings import findings, was_run
from rankfall.report.page.question import MOST

FASTEST, LEARNED = "Which architecture collapses fastest?", "What did they learn?"
FOUND = "Can a token still be found in the last layer?"


def answers(*rows: dict[str, Any]) -> dict[str, str]:
    scores = conform("scorecard", list(rows)).to_pandas()
    by_question = {finding.question: finding.answer for finding in findings({"scorecard": scores}.get)}
    assert all(len(answer.split()) <= MOST for answer in by_question.values())
    return by_question


def residual(
    name: str, value: float, deviation: float = 0.001, order: float | None = None, **more: Any
) -> dict[str, Any]:
    one = row(name, residual_last=value, residual_last__deviation=deviation, **more)
    return one | ({} if order is None else {"block_order": order, "block_order_reason": ""})


def test_the_order_is_asked_before_the_residual() -> None:
    """Three that tied were one winner, and one of them was of order 1 where the others are of order 3."""
    text = answers(residual("a", 0.057, order=3.0), residual("b", 0.0575, order=3.0), residual("c", 0.01, order=1.0))
    assert text[FASTEST].startswith("Fastest of 3: a and b (order 3: every layer cubes a small residual)")


def test_one_architecture_wins_over_nobody() -> None:
    """A setting with one architecture had a fastest one, and so had one in which all have the same order."""
    assert answers(residual("a", 0.5, order=3.0))[FASTEST].startswith("Residual at the last layer: a (0.500")
    some = answers(residual("a", 0.5, order=1.0), residual("b", 0.1, order=1.0), residual("c", 0.2))[FASTEST]
    assert "Fastest" not in some and "largest in a (0.500 ± 0.001), least in b (0.100 ± 0.001)" in some


def test_without_orders_the_law_comes_before_the_residual_and_rounding_is_no_number() -> None:
    """There was "a law of a and b", without a word of which falls faster; a residual that is rounding was 0.000."""
    laws = (("a", -5.0), ("b", -1e6))
    text = answers(*(row(name, log_residual=value, log_residual__deviation=0.0) for name, value in laws))[FASTEST]
    assert "least in b (10^-1,000,000)" in text
    text = answers(residual("a", 1e-16, 1e-17, residual_last__floor=1.0), residual("b", 0.5))[FASTEST]
    assert "least in a (floor)" in text


def test_no_sentence_mixes_settings() -> None:
    """The network of another task or depth stood first, or was counted."""
    here = [residual("a", 0.5), residual("b", 0.9)]
    there = [row("a", depth=12, residual_last=0.001)]
    other = row("c", residual_last=0.0) | {"task": "circle", "setting": "circle, long, depth 6"}
    for rows in ([*here, *there, other], [other, *there, *here]):
        result = {one.question: one for one in findings({"scorecard": conform("scorecard", rows).to_pandas()}.get)}
        assert (result[FASTEST].setting, result[FASTEST].seeds) == ("sorting, long, depth 6", "3 seeds")
        assert "least in a (0.500 ± 0.001)" in result[FASTEST].answer


def test_chance_is_said_and_who_is_at_it() -> None:
    rows = [
        row("SAN", identity_rate=0.125, identity_rate__chance=0.125, identity_rate__deviation=0.0),
        row("full", identity_rate=0.99, identity_rate__chance=0.125, identity_rate__deviation=0.0),
    ]
    assert answers(*rows)[FOUND].endswith("in full (99%), least in SAN (12.5%, at chance); chance: 12.5%.")
    worse = row("worse", identity_rate=0.05, identity_rate__chance=0.125, identity_rate__deviation=0.01)
    assert "least in worse (5% ± 1%, below chance)" in answers(*rows, worse)[FOUND]


def test_each_seed_has_its_own_chance() -> None:
    """An accuracy above chance in each of its seeds was at chance: it was compared with the mean of chances, which vary more."""
    above = row("weak", accuracy=0.5, accuracy__each="0=0.43 1=0.51 2=0.57", accuracy__chance=0.45)
    assert "at chance" in answers(above, row("b", accuracy=0.9, accuracy__chance=0.45))[LEARNED]
    above["accuracy_chance_each"] = "0=0.38 1=0.45 2=0.52"
    assert "at chance" not in answers(above, row("b", accuracy=0.9, accuracy__chance=0.45))[LEARNED]


def test_one_seed_decides_nothing() -> None:
    rows = [
        row(name, accuracy=value, accuracy__each=f"0={value}") | {"accuracy_seeds": 1, "accuracy_of": 1}
        for name, value in (("a", 0.5), ("b", 0.51))
    ]
    assert answers(*rows)[LEARNED].endswith(": b 51% and a 50% (one seed: not decided).")


def test_a_tie_of_all_is_no_finding_and_one_of_some_is_named() -> None:
    same = [row(name, accuracy=0.5, accuracy__each=each) for name, each in (("a", "0=0.4 1=0.6"), ("b", "0=0.6 1=0.4"))]
    assert LEARNED not in answers(*same)
    chain = [
        row("a", accuracy=0.5, accuracy__each="0=0.4 1=0.5 2=0.6"),
        row("b", accuracy=0.58, accuracy__each="0=0.68 1=0.58 2=0.48"),
        row("c", accuracy=0.66, accuracy__each="0=0.56 1=0.67 2=0.75"),
    ]
    text = answers(*chain)[LEARNED]
    assert "highest in b and c (58% to 66%, a tie)" in text and "least" not in text  # b ties with both ends


def test_costs_are_ranked_where_their_intervals_do_not_overlap() -> None:
    """The same network had cost 53 or 37 ms, by what else the machine did, and was ranked by it."""
    low, high = ("0=5 1=5.1 2=5.2 3=5.1 4=5.3 5=5.2 6=9", "0=5.4 1=5.5 2=5.6 3=5.5 4=5.4 5=5.5 6=5.6")
    near = [row(name, cost_ms=5.2, cost_ms__each=each) for name, each in (("a", low), ("b", high))]
    assert "What does it cost?" not in answers(*near)  # the slow reading of a is above all of b's
    high = "0=9.4 1=9.5 2=9.6 3=9.5 4=9.4 5=9.5 6=9.6"
    apart = answers(near[0], row("b", cost_ms=9.5, cost_ms__each=high))["What does it cost?"]
    assert "in b (9.50 ms), least in a (5.20 ms)" in apart


def test_kinds_of_attention_are_all_counted() -> None:
    base = {"block": "attention alone", "quantity": "res", "biases": True, "attention": "own", "position": "none"}
    table = pd.DataFrame(
        [base | {"normaliser": str(k), "mask": None, "sentinels": "none", "order": p}
         for k, p in enumerate((4.0, 3.0, 2.0, 1.0, 0.0, None))]
    )  # fmt: skip
    answer, _ = say_orders({"orders": table}.get)
    assert answer.startswith("Of 6 kinds") and "1 keep it from vanishing; 3 have another order or none." in answer


def test_networks_that_were_not_trained_are_named_by_their_training() -> None:
    cells = {"task": "sorting", "architecture": "a", "seed": 0, "status": "done", "seconds": 1.0, "device": "cpu"}
    both = [{"training": "fresh", "epochs": 0}, {"training": "long", "epochs": 5}]
    table = pd.DataFrame([cells | one | {"processor": "one"} for one in both])
    assert "1 of training fresh (random initial weights), 1 of training long" in was_run(table)
    assert "minutes by the clock, summed over its jobs" in was_run(table)


def test_a_question_on_the_terminal_names_its_setting_if_there_are_several(tmp_path: Path) -> None:
    """Of the initial networks "3 of 5 keep at least 0.5", of the trained ones another sentence, and neither named its networks."""
    fast, slow = residual("a", 0.5), residual("b", 0.9)
    other = row("c", residual_last=0.0) | {"task": "circle", "setting": "circle, long, depth 6"}
    for rows, where in (([fast, slow], ""), ([fast, slow, other], " (sorting, long, depth 6)")):
        tables.write("scorecard", rows, tmp_path / "tables" / "scorecard.parquet")
        assert f"{FASTEST}{where} The residual at the last layer is largest" in read_findings(tmp_path)[0]


def test_what_no_training_can_teach_is_what_theory_says() -> None:
    """Networks at random weights that gave one row were said to be beyond teaching, where theory allows more."""
    table = pd.DataFrame(
        {"untrained_rows": [1, 1, 8], "theory_rows": pd.array([1, None, 8], dtype="Int64"), "tokens": 8}
    )
    answer, _ = say_places({"probe": table}.get)
    assert "1 of 3 combinations" in answer and "1 give" in answer
