"""The analysis on tables whose answer is known: what decides has an AUC of 1, noise covers chance, and architectures stay whole."""

import re

import numpy as np
import pytest
import scipy.stats
from births import analysis, ended, networks, one
from pandas import DataFrame, Series

from studies.prediction.prediction_scores.features import features
from studies.prediction.prediction_scores.figure import prediction_scores
from studies.prediction.prediction_scores.fits import linear, logistic, scores
from studies.prediction.prediction_scores.held_out import evaluate
from studies.prediction.prediction_scores.measure import KNOWS, interval_ends
from studies.prediction.prediction_scores.pairs import auc, explain_variance, somers_d
from studies.prediction.prediction_scores.scores import DESIGN, SIZE, judge_alone, judge_gain
from studies.prediction.prediction_scores.shown import say_prediction


def test_a_predictor_that_decides_has_an_auc_of_one() -> None:
    found = networks()
    rows = analysis(found.assign(birth_residual=-found.over_chance), "trains", "over_chance", "steps")
    for kind in ("alone", "added"):
        row = one(rows, task="a", outcome="trains", kind=kind, predictor="residual", over=SIZE)
        assert row.value > 0.995 and row.low > 0.99
    assert one(rows, task="a", outcome="trains", kind="alone", predictor="residual", over=SIZE).verdict == "predicts"
    added = one(rows, task="a", outcome="trains", kind="added", predictor="residual", over=SIZE)
    assert added.verdict == "adds" and added.gain > 0.3
    assert (
        one(
            rows, task="a", outcome="over_chance", statistic="somers_d", kind="alone", predictor="residual", over=SIZE
        ).value
        > 0.98
    )
    assert (
        one(rows, task="a", outcome="over_chance", statistic="r2", kind="alone", predictor="residual", over=SIZE).value
        > 0.9
    )
    assert one(rows, task="a", outcome="steps", kind="alone", predictor="residual", over=SIZE).value > 0.95


def test_noise_covers_chance() -> None:
    """Of twenty tables of noise, the intervals of one predictor miss chance about once; and what is seen is chance in the mean."""
    rng, missed, seen = np.random.default_rng(5), 0, []
    drawn = np.vstack([np.ones(40), rng.multinomial(40, np.full(40, 1 / 40), size=400)])
    for seed in range(20):
        found = networks(seed=seed)
        made = evaluate(found, ["birth_residual"], "trains", sorted(found.architecture.unique()))["auc"].value(drawn)
        low, high, low_of_all = interval_ends(made, 14)
        missed += not low <= 0.5 <= high
        seen.append(made[0])
        assert low_of_all < 0.5
    assert missed <= 4
    assert abs(np.mean(seen) - 0.5) < 0.03


def test_an_architecture_that_is_known_helps_none_that_is_not() -> None:
    """Every architecture has one number of its own, and all its networks end alike: who saw it would know; who did not cannot."""
    found = networks(architectures=60, seeds=3)
    rng = np.random.default_rng(1)
    names = sorted(found.architecture.unique())
    fate, mark = (dict(zip(names, rng.permutation(len(names)))) for _ in range(2))
    found = ended(found.assign(over_chance=found.architecture.map(fate) / len(names)))
    found["birth_residual"] = found.architecture.map(mark).astype(float)
    row = one(analysis(found), task="a", outcome="trains", kind="alone", predictor="residual", over=SIZE)
    assert row.low < 0.5 < row.high


def test_what_follows_from_depth_adds_nothing_to_it() -> None:
    found = networks()
    rng = np.random.default_rng(2)
    found = ended(found.assign(over_chance=1 / (1 + np.exp(np.log2(found.depth) - 3 + rng.normal(size=len(found))))))
    found["birth_residual"] = np.log(found.depth) * 7
    rows = analysis(found)
    alone = one(rows, task="a", outcome="trains", kind="alone", predictor="residual", over=SIZE)
    depth = one(rows, task="a", outcome="trains", model="depth", over=SIZE)
    assert alone.verdict == "predicts" and alone.value == pytest.approx(depth.value, abs=0.02)
    added = one(rows, task="a", outcome="trains", kind="added", predictor="residual", over=SIZE)
    assert added.verdict == "adds nothing" and abs(added.gain) < 0.01


def test_a_task_whose_networks_end_alike_has_a_reason() -> None:
    found = networks(tasks=("a", "b"))
    found = ended(found.assign(over_chance=np.where(found.task == "b", 0.9, found.over_chance)))
    rows = analysis(found)
    row = one(rows, task="b", outcome="trains", kind="alone", predictor="residual", over=SIZE)
    assert np.isnan(row.value) and "no pair" in row.value_reason and row.verdict == "undecided"
    known, both = (
        one(rows, task=task, outcome="trains", kind="alone", predictor="residual", over=SIZE) for task in ("a", "all")
    )
    assert (both.value, both.low, both.tasks, both.networks) == (known.value, known.low, 1, known.networks)


def score_parts(found: DataFrame, outcome: str, statistic: str, null: str) -> float:
    names = sorted(found.architecture.unique())
    return float(evaluate(found, list(KNOWS[null]), outcome, names)[statistic].value(np.ones((1, len(names))))[0])


def alternate(found: DataFrame) -> Series:
    """Whether a network's architecture is one of every second."""
    return found.architecture.map(
        {name: place % 2 == 0 for place, name in enumerate(sorted(found.architecture.unique()))}
    )


def test_a_part_that_decides_is_predicted_and_what_mirrors_it_adds_nothing() -> None:
    """Whether a network trains depends on its norm, and the residual at birth says nothing but which norm it has."""
    found = networks()
    normed = alternate(found)
    found = ended(found.assign(over_chance=np.where(normed, 0.9, 0.1), norm=np.where(normed, "layer", None)))
    found["birth_residual"] = normed + 0.01 * found.birth_residual
    rows = analysis(found)
    design = one(rows, task="a", outcome="trains", model=DESIGN, over=SIZE)
    assert design.value > 0.99 and design.gain_low > 0.3
    verdicts = {
        null: one(rows, task="a", outcome="trains", kind="added", predictor="residual", over=null).verdict
        for null in (SIZE, DESIGN)
    }
    assert verdicts == {SIZE: "adds", DESIGN: "adds nothing"}


def test_parts_that_decide_nothing_are_at_chance() -> None:
    rng, seen = np.random.default_rng(6), []
    for seed in range(20):
        found = networks(seed=seed)
        names = sorted(found.architecture.unique())
        for part in ("norm", "mask", "residual"):
            found[part] = found.architecture.map(dict(zip(names, rng.choice(["a", "b", "c"], size=40))))
        made = evaluate(found, list(KNOWS[DESIGN]), "trains", names)["auc"]
        seen.append(float(made.value(np.ones((1, len(names))))[0]))
    assert abs(np.mean(seen) - 0.5) < 3 * np.std(seen) / 20**0.5 < 0.1


def test_a_part_that_no_other_architecture_has_says_nothing_of_it() -> None:
    """Whoever saw the architecture's name would know how it ends."""
    found = networks()
    found = ended(found.assign(over_chance=np.where(alternate(found), 0.9, 0.1), normaliser=found.architecture))
    assert score_parts(found, "trains", "auc", DESIGN) < 0.6


def test_missing_predictors_are_a_mark_and_no_number() -> None:
    """Gated units have no queries: if these alone fail, that they have none tells it."""
    found = networks()
    gone = found.architecture < "net10"
    found = ended(found.assign(over_chance=np.where(gone, 0.1, 0.9)))
    found["birth_gradient_queries"] = found.birth_gradient_queries.where(~gone)
    row = one(analysis(found), task="a", outcome="trains", kind="alone", predictor="gradient_queries", over=SIZE)
    assert row.value > 0.99 and row.known == pytest.approx(0.75)
    found["birth_gradient_keys"] = np.nan
    assert "gradient_keys" not in set(analysis(found).predictor)


def test_pairs_are_those_counted_one_by_one() -> None:
    rng = np.random.default_rng(0)
    score, outcome = rng.integers(5, size=30).astype(float), rng.integers(3, size=30).astype(float)
    fold, architecture = rng.integers(3, size=30), rng.integers(6, size=30)
    right = pairs = 0.0
    drawn = rng.integers(3, size=6).astype(float)
    for i in range(30):
        for j in range(30):
            if fold[i] == fold[j] and outcome[i] > outcome[j]:
                one = (
                    architecture[i] == architecture[j]
                )  # an architecture drawn twice has its own pairs twice, not four times
                times = drawn[architecture[i]] * (1.0 if one else drawn[architecture[j]])
                pairs += times
                right += times * (1.0 if score[i] > score[j] else 0.5 if score[i] == score[j] else 0.0)
    about = (architecture, fold, 6)
    assert auc(score, outcome, *about).value(drawn[None])[0] == pytest.approx(right / pairs)
    assert somers_d(score, outcome, *about).value(drawn[None])[0] == pytest.approx(2 * right / pairs - 1)


@pytest.mark.parametrize("values", [3, 100])
def test_auc_and_somers_d_are_those_of_scipy(values: int) -> None:
    """With many ties among scores and outcomes, and with few."""
    rng = np.random.default_rng(3)
    score, outcome = rng.integers(-values, values, size=(2, 50)).astype(float)
    about = (np.arange(50), np.zeros(50, int), 50)
    every = np.ones((1, 50))
    expected = scipy.stats.somersd(outcome, score).statistic
    assert somers_d(score, outcome, *about).value(every)[0] == pytest.approx(expected, rel=1e-12)
    trains = outcome > 0
    known = scipy.stats.mannwhitneyu(score[trains], score[~trains])[0] / (trains.sum() * (~trains).sum())
    assert auc(score, trains.astype(float), *about).value(every)[0] == pytest.approx(known)


def test_explained_is_one_for_the_truth_and_nothing_for_the_mean() -> None:
    outcome, usual = np.array([1.0, 2, 4]), np.full(3, 2.0)
    about = (np.array([0, 1, 1]), 2)
    every = np.ones((1, 2))
    assert explain_variance(outcome, outcome, usual, *about).value(every)[0] == 1
    assert explain_variance(usual, outcome, usual, *about).value(every)[0] == 0
    assert explain_variance(outcome + 1, outcome, usual, *about).value(every)[0] == pytest.approx(1 - 3 / 5)


def test_models_are_at_the_minimum_of_their_loss() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(80, 3))
    y = x @ [1.0, -2, 0] + 3
    assert linear(x, y)[0] == pytest.approx(3, abs=0.1)
    labels = (y + rng.normal(size=80) > 3).astype(float)
    found = logistic(x, labels)
    p = 1 / (1 + np.exp(-scores(x, found)))
    assert np.abs(x.T @ (p - labels) + found[1:]).max() < 1e-6 and abs((p - labels).sum()) < 1e-4
    assert np.isfinite(logistic(x * 100, (y > 3).astype(float))).all()  # separable


def test_features_are_learned_from_the_training_networks_alone() -> None:
    train, test = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([[-9.0], [2.5], [99.0], [np.nan]])
    made, other = features(train, test)
    assert made[:, 0].tolist() == [-0.75, -0.25, 0.25, 0.75]
    assert other[:, 0].tolist() == [-1, 0, 1, 0] and other[:, 2].tolist() == [0, 0, 0, 1]
    assert np.array_equal(
        features(np.exp(train), np.exp(test))[1], other
    )  # any increasing change of a number leaves them


def test_models_have_no_row_of_their_fold() -> None:
    """Outcomes of one fold are turned round: its scores stay, bit for bit, for who learns from others."""
    found = networks()
    before = evaluate(found, ["birth_residual"], "over_chance", sorted(found.architecture.unique()))["somers_d"]
    turned = found.assign(over_chance=np.where(found.fold == 3, 1 - found.over_chance, found.over_chance))
    after = evaluate(turned, ["birth_residual"], "over_chance", sorted(found.architecture.unique()))["somers_d"]
    names = sorted(found.architecture.unique())
    inside = [names.index(name) for name in found[found.fold == 3].architecture.unique()]
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
    found = networks()
    rng = np.random.default_rng(2)
    depth = np.log2(found.depth) - 3
    found["birth_residual"] = rng.normal(size=len(found))
    found["birth_norm_growth"] = np.log(found.depth) * 7
    found = ended(found.assign(over_chance=1 / (1 + np.exp(2 * depth + 4 * found.birth_residual))))
    rows = analysis(found)

    def read(name: str) -> DataFrame:
        assert name == "prediction_scores"
        return rows

    drawn = prediction_scores(read)
    for null in ("depth and parameters", "architecture and depth"):
        said = drawn.caption.partition(f"Beside {null}: ")[2].partition(".")[0]
        assert said.startswith("residual adds to them; ") and "norm growth" in said
    assert drawn.numbers is not None and set(drawn.numbers.outcome) == {"trains"}
    said, _ = say_prediction(read)
    assert re.search(r"^The configuration alone puts \d+% of pairs of networks in order", said), said
    assert "2 of 4 predictors beat chance alone." in said
    noise = ended(networks().assign(over_chance=rng.random(len(found))))
    unsure, _ = say_prediction(lambda name: analysis(noise))
    assert re.search(r"; 0 of \d+ predictors? beat chance alone\.$", unsure), unsure
