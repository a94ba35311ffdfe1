"""Check the analysis on tables whose answer is known: what decides has an AUC of 1, noise covers chance, and architectures stay whole."""

import re
from typing import Any

import numpy as np
import pytest
from pandas import DataFrame, Series

from studies.prediction.prediction.measure import deal_folds
from studies.prediction.prediction.rows import BIRTH, PARTS
from studies.prediction.prediction_scores import measure
from studies.prediction.prediction_scores.features import features
from studies.prediction.prediction_scores.figure import prediction_scores
from studies.prediction.prediction_scores.fits import linear, logistic, scores
from studies.prediction.prediction_scores.held_out import evaluate
from studies.prediction.prediction_scores.measure import KNOWS, interval_ends
from studies.prediction.prediction_scores.pairs import auc, explain_variance, somers_d
from studies.prediction.prediction_scores.scores import DESIGN, SIZE, STATISTICS, judge_alone, judge_gain
from studies.prediction.prediction_scores.shown import say_prediction

KNOWN = ("residual", "norm_growth", "gradient_queries", "own_share")  # predictors that have values


def make_networks(architectures: int = 40, seeds: int = 2, tasks: tuple[str, ...] = ("a",), seed: int = 0) -> DataFrame:
    """Return networks whose known predictors are noise: a number of the architecture plus one of the network; depth and parts decide
    nothing."""
    rng = np.random.default_rng(seed)
    table = DataFrame(
        [
            {"task": task, "architecture": f"net{number:02d}", "depth": depth, "seed": s}
            for task in tasks
            for number in range(architectures)
            for depth in (2, 8, 32)
            for s in range(seeds)
        ]
    )

    def draw_by_architecture() -> Any:
        return table.architecture.map({name: rng.normal() for name in table.architecture.unique()})

    table["over_chance"] = 1 / (1 + np.exp(-(draw_by_architecture() + rng.normal(size=len(table)))))
    table["fold"] = deal_folds(table.architecture, 10)
    table["parameters"] = 1000.0 + draw_by_architecture()
    table = table.assign(**dict.fromkeys(PARTS, "same"), **{f"birth_{name}": np.nan for name in BIRTH})
    for name in KNOWN:
        table[f"birth_{name}"] = draw_by_architecture() + rng.normal(size=len(table))
    return add_outcomes(table)


def add_outcomes(table: DataFrame, over_chance: Any = None) -> DataFrame:
    """Return the table with outcomes that follow from `over_chance`, by default the table's own."""
    table = table if over_chance is None else table.assign(over_chance=over_chance)
    trains = table.over_chance >= 0.5
    deepest = table[trains].groupby(["task", "architecture"]).depth.max()
    return table.assign(
        threshold=0.5,
        trains=trains,
        fate=np.where(trains, "trained", "slow"),
        steps=np.where(trains, 1000 * (1 - table.over_chance), np.nan),
        largest_depth=[float(deepest.get(pair, 0)) for pair in zip(table.task, table.architecture)],
    )


def analyse(table: DataFrame, *outcomes: str) -> DataFrame:
    """Analyse these outcomes, by default whether networks train; each takes a third of a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "STATISTICS", {name: STATISTICS[name] for name in outcomes or ("trains",)})
        return DataFrame(list(measure.analyse(table, draws=200)))


def select(rows: DataFrame, **labels: Any) -> Any:
    """Return the single row with these labels, by default of task a, of whether networks train, over depth and parameters."""
    for name, value in ({"task": "a", "outcome": "trains", "over": SIZE} | labels).items():
        rows = rows[rows[name] == value]
    assert len(rows) == 1, rows
    return rows.iloc[0]


def select_residual(rows: DataFrame, kind: str = "alone", **labels: Any) -> Any:
    """Return the row of what the residual predicts alone, or adds."""
    return select(rows, kind=kind, predictor="residual", **labels)


def architectures_of(table: DataFrame) -> list[str]:
    return sorted(table.architecture.unique())


def every_second(table: DataFrame) -> Series:
    """Return whether a network's architecture is one of every second."""
    return table.architecture.map({name: number % 2 == 0 for number, name in enumerate(architectures_of(table))})


def test_a_predictor_that_decides_has_an_auc_of_one() -> None:
    table = make_networks()
    rows = analyse(table.assign(birth_residual=-table.over_chance), "trains", "over_chance", "steps")
    alone, added = (select_residual(rows, kind) for kind in ("alone", "added"))
    assert min(alone.value, added.value) > 0.995 and min(alone.low, added.low) > 0.99
    assert (alone.verdict, added.verdict) == ("predicts", "adds") and added.gain > 0.3
    assert select_residual(rows, outcome="over_chance", statistic="somers_d").value > 0.98
    assert select_residual(rows, outcome="over_chance", statistic="r2").value > 0.9
    assert select_residual(rows, outcome="steps").value > 0.95


def test_noise_covers_chance() -> None:
    """Of twenty tables of noise, the intervals of one predictor miss chance about once, and the mean value is chance."""
    rng, missed, values = np.random.default_rng(5), 0, []
    drawn = np.vstack([np.ones(40), rng.multinomial(40, np.full(40, 1 / 40), size=400)])
    for seed in range(20):
        table = make_networks(seed=seed)
        areas = evaluate(table, ["birth_residual"], "trains", architectures_of(table))["auc"].value(drawn)
        low, high, low_of_all = interval_ends(areas, 14)
        missed += not low <= 0.5 <= high
        values.append(areas[0])
        assert low_of_all < 0.5
    assert missed <= 4
    assert abs(np.mean(values) - 0.5) < 0.03


def test_an_architecture_that_is_known_helps_none_that_is_not() -> None:
    """All networks of an architecture end alike, and have one number: a model that saw the architecture would know."""
    table, rng = make_networks(architectures=60, seeds=3), np.random.default_rng(1)
    names = architectures_of(table)
    fate, mark = (dict(zip(names, rng.permutation(len(names)))) for _ in range(2))
    table = add_outcomes(table, table.architecture.map(fate) / len(names))
    row = select_residual(analyse(table.assign(birth_residual=table.architecture.map(mark).astype(float))))
    assert row.low < 0.5 < row.high


def test_what_follows_from_depth_adds_nothing_to_it() -> None:
    table, rng = make_networks(), np.random.default_rng(2)
    table = add_outcomes(table, 1 / (1 + np.exp(np.log2(table.depth) - 3 + rng.normal(size=len(table)))))
    rows = analyse(table.assign(birth_residual=np.log(table.depth) * 7))
    alone, added, depth = select_residual(rows), select_residual(rows, "added"), select(rows, model="depth")
    assert alone.verdict == "predicts" and alone.value == pytest.approx(depth.value, abs=0.02)
    assert added.verdict == "adds nothing" and abs(added.gain) < 0.01


def test_a_part_that_decides_is_predicted_and_what_mirrors_it_adds_nothing() -> None:
    """Whether a network trains depends on its norm, and the residual at birth says nothing but which norm it has."""
    table = make_networks()
    normed = every_second(table)
    table = add_outcomes(table.assign(norm=np.where(normed, "layer", None)), np.where(normed, 0.9, 0.1))
    rows = analyse(table.assign(birth_residual=normed + 0.01 * table.birth_residual))
    design = select(rows, model=DESIGN)
    assert design.value > 0.99 and design.gain_low > 0.3
    verdicts = {null: select_residual(rows, "added", over=null).verdict for null in (SIZE, DESIGN)}
    assert verdicts == {SIZE: "adds", DESIGN: "adds nothing"}


def test_a_part_that_no_other_architecture_has_says_nothing_of_it() -> None:
    """A model that saw the architecture's name would know how it ends."""
    table = make_networks()
    table = add_outcomes(table.assign(normaliser=table.architecture), np.where(every_second(table), 0.9, 0.1))
    sums = evaluate(table, list(KNOWS[DESIGN]), "trains", architectures_of(table))["auc"]
    assert float(sums.value(np.ones((1, 40)))[0]) < 0.6


def test_missing_predictors_are_a_mark_and_no_number() -> None:
    """Gated units have no queries: if these alone fail, that they have none tells it."""
    table = make_networks()
    gated = table.architecture < "net10"
    table = add_outcomes(table, np.where(gated, 0.1, 0.9))
    table = table.assign(birth_gradient_queries=table.birth_gradient_queries.where(~gated), birth_gradient_keys=np.nan)
    rows = analyse(table)
    row = select(rows, kind="alone", predictor="gradient_queries")
    assert row.value > 0.99 and row.known == pytest.approx(0.75)
    assert "gradient_keys" not in set(rows.predictor)


# --- where there is little to analyse


def test_a_task_whose_networks_end_alike_has_a_reason() -> None:
    table = make_networks(tasks=("a", "b"))
    rows = analyse(add_outcomes(table, np.where(table.task == "b", 0.9, table.over_chance)))
    row = select_residual(rows, task="b")
    assert np.isnan(row.value) and "no pair" in row.value_reason and row.verdict == "undecided"
    known, both = (select_residual(rows, task=task) for task in ("a", "all"))
    assert (both.value, both.low, both.tasks, both.networks) == (known.value, known.low, 1, known.networks)


def test_networks_of_one_fold_have_no_score() -> None:
    """They once counted as pairs in the wrong order."""
    for table in (make_networks(architectures=1, seeds=4), make_networks().query("fold == 3")):
        rows = analyse(table, *STATISTICS)
        assert rows.value.isna().all() and set(rows.pairs) == {0}
        assert set(rows.value_reason) - {"all networks end alike: there is no pair to put in order"} == {
            "all networks are of one fold: there is none to learn from"
        }


@pytest.mark.parametrize("share", [0.1, 1 / 3, 0.9])
def test_networks_that_end_alike_have_no_explained_variance(share: float) -> None:
    """Their mean differs from them by rounding, and a ratio of two roundings is no number."""
    rows = analyse(add_outcomes(make_networks(architectures=12, seeds=1), share), "over_chance", "steps")
    assert rows.value.isna().all()


def test_networks_that_a_model_cannot_distinguish_tie() -> None:
    """Depth decides nothing in the networks learned from, and all in those judged; scores differ by rounding and the intercept."""
    table = make_networks(architectures=40, seeds=1)
    share = table.architecture.map({name: number / 40 for number, name in enumerate(architectures_of(table))})
    rows = analyse(add_outcomes(table, np.where(table.fold == 3, (table.depth == 8) + 0.0, share)), "over_chance")
    depth = select(rows, outcome="over_chance", statistic="somers_d", model="depth", over=DESIGN)
    assert depth.value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.long
def test_of_few_architectures_nothing_is_decided() -> None:
    """Intervals over few are too narrow: of noise, half of the tables of four architectures said that something predicts."""
    for n in (4, 12, 20):
        table = make_networks(architectures=n)
        rows = analyse(table.assign(birth_residual=-table.over_chance), "over_chance")
        alone = select_residual(rows, outcome="over_chance", statistic="somers_d", over=DESIGN)
        assert alone.value > 0.9 and alone.verdict == ("predicts" if n == 20 else "undecided")
    table = make_networks()
    rows = analyse(add_outcomes(table, np.where(table.architecture == "net11", 0.9, 0.1)))
    assert set(rows[rows.outcome == "trains"].verdict) == {"", "undecided"}


# --- statistics and models


def test_pairs_are_those_counted_one_by_one() -> None:
    """An architecture that is drawn twice has its own pairs twice, not four times."""
    rng = np.random.default_rng(0)
    score, outcome = rng.integers(5, size=30).astype(float), rng.integers(3, size=30).astype(float)
    fold, architecture = rng.integers(3, size=30), rng.integers(6, size=30)
    ordered = pairs = 0.0
    drawn = rng.integers(3, size=6).astype(float)
    for i in range(30):
        for j in range(30):
            if fold[i] == fold[j] and outcome[i] > outcome[j]:
                alike = architecture[i] == architecture[j]
                times = drawn[architecture[i]] * (1.0 if alike else drawn[architecture[j]])
                pairs += times
                ordered += times * (1.0 if score[i] > score[j] else 0.5 if score[i] == score[j] else 0.0)
    about = (architecture, fold, 6)
    assert auc(score, outcome, *about).value(drawn[None])[0] == pytest.approx(ordered / pairs)
    assert somers_d(score, outcome, *about).value(drawn[None])[0] == pytest.approx(2 * ordered / pairs - 1)


def test_explained_is_one_for_the_truth_and_nothing_for_the_mean() -> None:
    outcome, usual = np.array([1.0, 2, 4]), np.full(3, 2.0)
    for score, share in ((outcome, 1), (usual, 0), (outcome + 1, 1 - 3 / 5)):
        sums = explain_variance(score, outcome, usual, np.array([0, 1, 1]), 2)
        assert sums.value(np.ones((1, 2)))[0] == pytest.approx(share)


def test_models_are_at_the_minimum_of_their_loss() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(80, 3))
    y = x @ [1.0, -2, 0] + 3
    assert linear(x, y)[0] == pytest.approx(3, abs=0.1)
    labels = (y + rng.normal(size=80) > 3).astype(float)
    coefficients = logistic(x, labels)
    p = 1 / (1 + np.exp(-scores(x, coefficients)))
    assert np.abs(x.T @ (p - labels) + coefficients[1:]).max() < 1e-6 and abs((p - labels).sum()) < 1e-4
    assert np.isfinite(logistic(x * 100, (y > 3).astype(float))).all()  # separable


def test_features_are_learned_from_the_training_networks_alone() -> None:
    """Any increasing change of a number leaves them as they are."""
    train, test = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([[-9.0], [2.5], [99.0], [np.nan]])
    learned, other = features(train, test)
    assert learned[:, 0].tolist() == [-0.75, -0.25, 0.25, 0.75]
    assert other[:, 0].tolist() == [-1, 0, 1, 0] and other[:, 2].tolist() == [0, 0, 0, 1]
    assert np.array_equal(features(np.exp(train), np.exp(test))[1], other)


def test_models_have_no_row_of_their_fold() -> None:
    """Outcomes of one fold are reversed: its scores stay, bit for bit, since they are learned from the others."""
    table = make_networks()
    names = architectures_of(table)
    turned = table.assign(over_chance=np.where(table.fold == 3, 1 - table.over_chance, table.over_chance))
    before, after = (evaluate(each, ["birth_residual"], "over_chance", names)["somers_d"] for each in (table, turned))
    inside = [names.index(name) for name in table[table.fold == 3].architecture.unique()]
    part = np.ix_(inside, inside)
    assert np.array_equal(before.above[part], (after.below - after.above)[part].T)


def test_verdicts() -> None:
    assert judge_alone("auc", 0.51, 0.7) == "predicts"
    assert judge_alone("auc", 0.4, 0.519) == "does not predict"
    assert judge_alone("auc", 0.4, 0.521) == "undecided"
    assert judge_gain("somers_d", 0.001, 0.2) == "adds"
    assert judge_gain("somers_d", -0.01, 0.039) == "adds nothing"
    assert judge_gain("r2", -0.01, 0.021) == "undecided"
    assert judge_gain("r2", float("nan"), float("nan")) == "undecided"


def test_figure_and_sentence_say_what_adds_and_what_does_not() -> None:
    table, rng = make_networks(), np.random.default_rng(2)
    table["birth_residual"] = rng.normal(size=len(table))
    table["birth_norm_growth"] = np.log(table.depth) * 7
    depth = np.log2(table.depth) - 3
    rows = analyse(add_outcomes(table, 1 / (1 + np.exp(2 * depth + 4 * table.birth_residual))))
    picture = prediction_scores({"prediction_scores": rows}.__getitem__)
    for null in ("depth and parameters", "architecture and depth"):
        sentence = picture.caption.partition(f"Beside {null}: ")[2].partition(".")[0]
        assert sentence.startswith("adds: residual; ") and "norm growth" in sentence
    assert picture.numbers is not None and set(picture.numbers.outcome) == {"trains"}
    text, _ = say_prediction({"prediction_scores": rows}.__getitem__)
    assert re.search(r"^The configuration alone puts \d+% of pairs of networks in order", text), text
    assert "2 of 4 predictors beat chance alone." in text
    noise = analyse(add_outcomes(make_networks(), rng.random(len(table))))
    text, _ = say_prediction({"prediction_scores": noise}.__getitem__)
    assert re.search(r"; 0 of \d+ predictors? beat chance alone\.$", text), text
