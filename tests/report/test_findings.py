"""Guards the sentences of a run: of one setting, ties as ties, seeds counted, chance beside numbers; crafted to say something wrong."""

from typing import Any

import pandas as pd
from score_rows import row

from rankfall.position.probe.sentence import say_places
from rankfall.rank.orders.sentence import say_orders
from rankfall.rank.residuals.headline import find_tenth
from rankfall.report.conform import conform
from rankfall.report.looks import looks
from rankfall.report.page.findings import findings, was_run
from rankfall.report.settings import find_setting

FASTEST, LEARNED, FOUND = (
    "Which architecture collapses fastest?",
    "What did they learn?",
    "Can a token still be found in the last layer?",
)
WITHOUT = " (no skip connections, no norms, no MLPs)"


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
    assert (
        "by the order of the block (3: a small residual is cubed in every layer) a and b collapse fastest of 3." in text
    )
    assert "Of these a and b tie at the last layer (means over 3 seeds)." in text


def test_one_architecture_wins_over_nobody() -> None:
    """A setting with one architecture had a fastest one, and so had one in which all have the same order."""
    alone = said(residual("a", 0.5, order=3.0))[FASTEST]
    assert "a is the only one here, and the order of its block is 3" in alone and "fastest" not in alone
    alone = said(residual("a", 0.5))[FASTEST]
    assert "a is the only one here, with a residual of 0.500 ± 0.001" in alone and "smallest" not in alone
    some = said(residual("a", 0.5, order=1.0), residual("b", 0.1, order=1.0), residual("c", 0.2))[FASTEST]
    assert "all 2 of 3 whose order is known have blocks of the same order (1: " in some and "fastest" not in some
    assert "Of these b is left with a residual of 0.100" in some
    less = said(residual("a", 0.5, order=1.0), residual("b", 0.4, order=1.0), residual("c", 1e-9, 1e-10))[FASTEST]
    assert (
        "the order of the block is known of 2 of 3 alone, and one of the others is left with less: the residual is smallest in c"
        in less
    )
    assert "fastest" not in less and "Of these" not in less
    same = said(*(residual(name, 0.5, 0.1, order=1.0) for name in "abc"))[FASTEST]
    assert "all 3 have blocks of the same order (1: " in same and "fastest" not in same


def test_without_orders_the_law_comes_before_the_residual_and_rounding_is_no_number() -> None:
    """There was "a law of a and b", without a word of which falls faster; a residual that is rounding was 0.000."""
    laws = (("a", -5.0), ("b", -1e6))
    text = said(*(row(name, log_residual=value, log_residual__deviation=0.0) for name, value in laws))[FASTEST]
    assert "the residual is smallest in b (10^-1,000,000)" in text
    text = said(residual("a", 1e-16, 1e-17, residual_last__floor=1.0), residual("b", 0.5))[FASTEST]
    assert "the residual is smallest in a (floor)" in text


def test_a_residual_is_one_number_in_all_findings() -> None:
    """It was 0.487 by the law, of fewer samples, in the sentence before the one that counts it among those of at least 0.5."""
    laws = {
        name: {"log_residual": value, "log_residual__deviation": 0.0} for name, value in (("a", -0.3), ("b", -0.25))
    }
    found = said(residual("a", 0.655, **laws["a"]), residual("b", 0.605, **laws["b"]))
    assert "the residual is smallest in b (0.605 ± 0.001)" in found[FASTEST] and "of 2 of 2 without" in found[FASTEST]
    assert "b (residual 0.605 ± 0.001) and a (residual 0.655 ± 0.001)" in found["Which order has each block?"]
    assert "geometric mean of the residual over samples is largest in b" in found["How small does the residual become?"]
    small = said(
        residual("a", 0.655, **laws["a"]), residual("b", 2e-5, 1e-6, log_residual=-4.7, log_residual__deviation=0.0)
    )
    assert "the residual is smallest in b (2.0e-5 ± 1.0e-6)" in small[FASTEST]
    assert "b (residual 2.0e-5 ± 1.0e-6) and a (residual 0.655 ± 0.001)" in small["Which order has each block?"]


def test_the_first_finding_is_three_sentences_and_the_next_has_the_rest() -> None:
    """It had a name, an order and a residual of every architecture: twenty lines of a card."""
    orders = [residual(f"net {n}", 0.1 + n / 100, order=float(n % 4)) for n in range(20)]
    found = said(*orders, *(residual(f"own {n}", 0.9) for n in range(9)), lost("gone") | {"residual_last_of": 3})
    text = found[FASTEST].partition(": ")[2]
    assert len(text.split(". ")) == 3 and len(text) < 420 and "among the 20 of 29 whose order is known" in text
    assert "of 0 of 0" not in text and "9 of 29 without skip connections; 1 has no residual there." in text
    rest = found["Which order has each block?"]
    assert all(one["architecture"] in rest for one in orders) and "own 3 (residual 0.900 ± 0.001)" in rest
    assert "net 0, net 12, net 16" in rest.partition("(0:")[0].replace(WITHOUT, "")


def test_what_has_no_residual_is_not_said_to_keep_one() -> None:
    """An architecture whose state left the number format counted as one that never falls below a tenth, and among those of which it can
    be said whether they do."""

    def tenth(name: str, reason: str = "") -> dict[str, Any]:
        gone = row(name, depth_below_tenth=None) | {"depth_below_tenth_reason": reason}
        return gone if reason else row(name, depth_below_tenth=2.0, depth_below_tenth__deviation=0.0)

    never = find_tenth([(0, 1.0), (1, 0.4)])[1]
    low = "from layer 7 on there is no residual: the state is 0"
    text = said(
        tenth("a"),
        tenth("b", f"{never} (in 1 of 3 seeds)"),
        tenth("c", low),
        tenth("d", "3 diverged of 3 seeds"),
        tenth("e", f"{never} (in 3 of 3 seeds)"),
        tenth("f", never),
    )["At which layer does the residual fall below 0.1?"]
    assert "Of b 1 of 3 seeds never falls below it. Of e no seed falls below it. Of f the one seed never falls" in text
    assert f"Of c nobody can say: {low}." in text and "Of d nobody can say: 3 diverged of 3 seeds." in text


def test_settings_have_the_labels_of_the_configuration() -> None:
    with looks({"sorting": "to sort", "long": "20 epochs"}, {}):
        rows = [
            row("a", depth=depth, accuracy=value, accuracy__deviation=0.01) for depth, value in ((2, 0.9), (6, 0.5))
        ]
        assert said(*rows)[LEARNED].startswith("At to sort, 20 epochs, depth ")
        assert said(*rows)["What does depth do to accuracy?"].startswith("At to sort, 20 epochs: ")


def test_an_order_of_zero_is_zero() -> None:
    """It was the rounding of its fit, -3.1e-11."""
    text = said(residual("a", 0.05, order=3.0), residual("b", 0.9, order=-3.1e-11))["Which order has each block?"]
    assert "(0: a small residual is" in text and "e-11" not in text


def test_the_law_is_asked_before_the_residual() -> None:
    deep = [
        residual(name, 0.0, order=3.0, residual_last__floor=1.0, log_residual=log, log_residual__deviation=5.0)
        for name, log in (("a", -100.0), ("b", -200.0))
    ]
    text = said(*deep)[FASTEST]
    assert "Of these b is left with a residual of 10^-200 at the last layer (means over 3 seeds)." in text
    text = said(*deep, residual("c", 0.0, order=3.0, log_residual=-203.0, log_residual__each="0=-200 1=-206 2=-203"))[
        FASTEST
    ]
    assert "Of these b and c tie at the last layer" in text


def test_no_sentence_mixes_settings() -> None:
    """The network of another task or depth stood first, or was counted."""
    here = [residual("a", 0.5), residual("b", 0.9)]
    there = [row(name, depth=12, residual_last=0.001) for name in ("a",)]
    other = row("c", residual_last=0.0) | {"task": "circle", "setting": "circle, long, depth 6"}
    for rows in ([*here, *there, other], [other, *there, *here]):
        text = said(*rows)[FASTEST]
        assert text.startswith(
            "At sorting, long, depth 6 (of 3 settings, one with most architectures): no order of a block is known;"
        )
        assert (
            "smallest in a (0.500 ± 0.001)" in text
            and "is left at the last layer of 2 of 2 without skip connections." in text
        )
    text = said(*here, *there, other, setting="sorting, long, depth 12")[FASTEST]
    assert (
        text.startswith("At sorting, long, depth 12: ")
        and "0.001" in text
        and "of 0 of 1 without skip connections." in text
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
    mixed = said(*rows, row("c", accuracy=0.9, accuracy__deviation=0.01), row("d", accuracy=0.2))[LEARNED]
    assert "highest in c (90% ± 1%), least in d (20%); not ranked: b 51% and a 50% (one seed: not decided)" in mixed


def test_seeds_that_are_lost_are_said() -> None:
    some = row("some", accuracy=0.5) | {"accuracy_seeds": 2, "accuracy_lost": "1 diverged of 3 seeds: loss not finite"}
    text = said(some, row("all", accuracy=0.9), lost("gone"))[LEARNED]
    assert "(means over 3 seeds; some 2)" in text
    assert "Seeds of some are lost: 1 diverged of 3 seeds: loss not finite." in text
    assert "Seeds of gone are lost: 3 diverged of 3 seeds: loss not finite at step 3." in text


def test_nothing_is_said_where_all_have_diverged() -> None:
    assert LEARNED not in said(lost("a"), lost("b"))
    assert LEARNED in said(lost("a"), lost("b"), row("c", depth=2, accuracy=0.5))


def test_ties_at_both_ends_and_between() -> None:
    same = [row(name, accuracy=0.5, accuracy__each=each) for name, each in (("a", "0=0.4 1=0.6"), ("b", "0=0.6 1=0.4"))]
    assert "highest in a and b (50%, a tie), all that have this number" in said(*same)[LEARNED]
    chain = [
        row("a", accuracy=0.5, accuracy__each="0=0.4 1=0.5 2=0.6"),
        row("b", accuracy=0.58, accuracy__each="0=0.68 1=0.58 2=0.48"),
        row("c", accuracy=0.66, accuracy__each="0=0.56 1=0.67 2=0.75"),
    ]
    text = said(*chain)[LEARNED]
    assert "highest in b and c (58% to 66%, a tie), least in a and b (50% to 58%, a tie), which overlap" in text
    assert (
        "test accuracy is known of one architecture alone, a (50%) (means over 3 seeds)."
        in said(row("a", accuracy=0.5))[LEARNED]
    )


def test_costs_are_ranked_where_their_intervals_do_not_overlap() -> None:
    """The same network had cost 53 or 37 ms, by what else the machine did, and was ranked by it."""
    low, high = ("0=5 1=5.1 2=5.2 3=5.1 4=5.3 5=5.2 6=9", "0=5.4 1=5.5 2=5.6 3=5.5 4=5.4 5=5.5 6=5.6")
    near = [row(name, cost_ms=5.2, cost_ms__each=each) for name, each in (("a", low), ("b", high))]
    assert "all that have this number" in said(*near)["What does it cost?"]  # the slow reading of a is above all of b's
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


def test_a_mean_of_layers_is_not_a_layer() -> None:
    rows = [row(name, depth_below_tenth=value, depth_below_tenth__deviation=spread)
            for name, value, spread in (("a", 0.5, 0.7), ("b", 2.0, 1.0), ("c", 2.0, 0.0))]  # fmt: skip
    text = said(*rows)["At which layer does the residual fall below 0.1?"]
    assert (
        "layers 0.5 ± 0.7 (mean over seeds): a; layers 2 ± 1.0 (mean over seeds): b; layer 2: c (means over 3 seeds)."
        in text
    )


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
    assert "Of 6 kinds" in found and "Without position" not in found
    assert "1 has an order between these. 1 has an order beyond these. 1 has no order" in found


def test_kinds_of_attention_without_extras_are_counted_by_themselves() -> None:
    """A grid with many positions has many kinds that shrink, whatever normalisers do."""
    kinds = [("a", "none", 3.0), ("b", "none", 1.0), ("c", "none", 3.0)] + [
        (name, f"p{k}", 1.0) for name in "abc" for k in range(9)
    ]
    table = pd.DataFrame(
        {
            "block": "attention alone",
            "quantity": "res",
            "biases": True,
            "attention": "multihead",
            "normaliser": name,
            "position": position,
            "mask": "none",
            "sentinels": "none",
            "order": order,
        }
        for name, position, order in kinds
    )
    found, _ = say_orders({"orders": table}.get)
    assert found.startswith(
        "Of 30 kinds of attention layer, 2 cube the residual in every layer (doubly exponential collapse). "
        "Without position, mask and special token 2 of 3 do. 28 shrink it by a factor"
    )


def test_every_architecture_without_a_number_has_its_own_reason() -> None:
    """All of them were given the reason of the first, with its number; of one that had lost a seed as well none was said."""
    why = {"a": "the network itself is 0.012 below chance", "b": "the network itself is 0.031 above chance"}
    rows = [row(name) | {"short_paths_of": 3, "short_paths_reason": reason} for name, reason in why.items()]
    rows[1] |= {"short_paths_lost": "1 diverged of 3 seeds"}
    text = said(*rows, row("c", short_paths=0.5))["Do short paths do the work?"]
    assert all(f"There is none of {name}: {reason}." in text for name, reason in why.items())
    assert "Seeds of b are lost: 1 diverged of 3 seeds." in text


def test_what_reads_the_same_in_one_seed_has_no_deviation_over_seeds() -> None:
    rows = [row(name, residual_last=0.5) | {"block_order": 1.0, "residual_last_seeds": 1} for name in "ab"]
    assert "Of these a and b tie at the last layer (one seed)." in said(*rows)[FASTEST]


def test_networks_that_were_not_trained_are_named_by_their_training() -> None:
    cells = {"task": "sorting", "architecture": "a", "seed": 0, "status": "done", "seconds": 1.0, "device": "cpu"}
    both = [{"training": "fresh", "epochs": 0}, {"training": "long", "epochs": 5}]
    table = pd.DataFrame([cells | one | {"processor": "one"} for one in both])
    assert "1 of them trained and the others left at their random initial weights (training fresh)" in was_run(table)
    took = table.assign(seconds=[600.0, 60.0])  # what is not trained is evaluated all the same
    assert "training took 1.0 minutes of computing" in was_run(took)


def test_variants_of_an_architecture_are_counted() -> None:
    """A grid that sets parts of four architectures was said to be of four."""
    cells = {
        "task": "sorting",
        "training": "long",
        "seed": 0,
        "status": "done",
        "seconds": 1.0,
        "device": "cpu",
        "epochs": 5,
    }
    designs = [("a", "softmax"), ("a", "l2"), ("a", "l2"), ("b", "softmax")]
    table = pd.DataFrame(
        [cells | {"architecture": name, "normaliser": part, "processor": "one"} for name, part in designs]
    )
    assert was_run(table).startswith("4 small networks of 2 architectures in 3 variants on 1 task, ")
    assert was_run(table[table.normaliser == "softmax"]).startswith("2 small networks of 2 architectures on 1 task, ")


def test_what_no_training_can_teach_is_what_theory_says() -> None:
    """Networks at random weights that gave one row were said to be beyond teaching, where theory allows more."""
    table = pd.DataFrame(
        {"untrained_rows": [1, 1, 8], "theory_rows": pd.array([1, None, 8], dtype="Int64"), "tokens": 8}
    )
    found, _ = say_places({"probe": table}.get)
    assert "1 of 3 combinations" in found and "1 give" in found and "1 more do at random weights." in found


def test_an_architecture_that_is_called_none_is_not_read_as_no_architecture() -> None:
    """`Equal shares of all tokens are 20% (one in 5); none is at that.`"""
    rows = [
        row(name, accuracy=value, accuracy__chance=0.2, accuracy__deviation=0.01)
        for name, value in (("none", 0.2), ("b", 0.9))
    ]
    text = said(*rows)[LEARNED]
    assert "; 'none' is at that." in text and "least in 'none' (" in text and "highest in b (" in text
