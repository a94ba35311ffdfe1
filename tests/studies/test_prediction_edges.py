"""The analysis where there is little to analyse: one fold, networks that end alike, ties, few architectures, tasks without a value."""

import numpy as np
import pytest
from births import analysis, ended, networks, one

from studies.prediction.prediction_scores.scores import DESIGN, STATISTICS


def test_networks_without_any_to_learn_from_have_no_score() -> None:
    """All of one fold: what was said is that every pair is in the wrong order."""
    for found in (networks(architectures=1, seeds=4), networks().query("fold == 3")):
        rows = analysis(found, *STATISTICS)
        assert rows.value.isna().all() and set(rows.pairs) == {0}
        assert set(rows.value_reason) - {"all networks end alike: there is no pair to put in order"} == {
            "all networks are of one fold: there is none to learn from"
        }


@pytest.mark.parametrize("share", [0.1, 1 / 3, 0.9])
def test_networks_that_end_alike_have_no_explained_variance(share: float) -> None:
    """Their mean is not to the last digit what they are equal to, and a ratio of two roundings is no number."""
    rows = analysis(ended(networks(architectures=12, seeds=1).assign(over_chance=share)), *STATISTICS)
    assert rows.value.isna().all()


def test_networks_that_a_model_cannot_tell_apart_tie() -> None:
    """Of the networks learned from depth decides nothing, of those judged all; scores differ by rounding and the intercept."""
    found = networks(architectures=40, seeds=1)
    names = sorted(found.architecture.unique())
    share = found.architecture.map({name: place / len(names) for place, name in enumerate(names)})
    found["over_chance"] = np.where(found.fold == 3, (found.depth == 8) + 0.0, share)
    found = analysis(ended(found), "over_chance")
    depth = one(found, task="a", outcome="over_chance", statistic="somers_d", model="depth", over=DESIGN)
    assert depth.value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.long
def test_of_few_architectures_nothing_is_decided() -> None:
    """Intervals over few are too narrow: of noise, half of the tables of four architectures said that something predicts."""
    decides = {n: networks(architectures=n) for n in (4, 12, 20)}
    for n, found in decides.items():
        rows = analysis(found.assign(birth_residual=-found.over_chance), "over_chance")
        alone = one(
            rows, task="a", outcome="over_chance", statistic="somers_d", kind="alone", over=DESIGN, predictor="residual"
        )
        assert alone.value > 0.9 and alone.verdict == ("predicts" if n == 20 else "undecided")
    found = networks()
    found = ended(found.assign(over_chance=np.where(found.architecture == "net11", 0.9, 0.1)))
    rows = analysis(found)
    assert set(rows[rows.outcome == "trains"].verdict) == {"", "undecided"}
