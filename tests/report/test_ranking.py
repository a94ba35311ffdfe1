"""Guards the one decision of what ties: paired over shared seeds, on the scale of the numbers, with known answers."""

import numpy as np
import pandas as pd
import pytest
from score_rows import row

from rankfall.report.conform import conform
from rankfall.report.decision import band
from rankfall.report.headlines import by_name
from rankfall.report.ranking import Evidence, find_extreme, shade, sides, span_readings
from rankfall.report.settings import settings_in


def seeds_of(**values: list[float]) -> Evidence:
    return Evidence(pd.DataFrame.from_dict(values, orient="index"))


def test_architectures_are_compared_seed_by_seed() -> None:
    """Gating kept more in every one of its comparisons, by less than seeds differ among themselves, and that was a tie."""
    plain = [0.2, 0.5, 0.8, 0.4, 0.6]
    evidence = seeds_of(plain=plain, gated=[one + 0.05 + 0.01 * (seed % 2) for seed, one in enumerate(plain)])
    assert evidence.against("plain").to_dict() == {"plain": 0, "gated": 1}
    assert evidence.against("gated").to_dict() == {"plain": -1, "gated": 0}


@pytest.mark.parametrize("shift", [-0.3, 0.0, 0.05, 0.3])
def test_the_interval_is_that_of_students_t(shift: float) -> None:
    """By the interval of a claim, which is computed one by one."""
    rng = np.random.default_rng(1)
    for count in (2, 3, 5, 9):
        apart = rng.normal(shift, 0.1, count)
        own = band(apart)
        wanted = 1.0 if own.low > 0 else -1.0 if own.high < 0 else 0.0
        result = sides(pd.DataFrame([apart]), pd.Series([1.0]))
        assert result[0] == wanted


def test_only_shared_seeds_count_and_one_decides_nothing() -> None:
    nan = float("nan")
    evidence = seeds_of(a=[0.1, 0.2, 0.3], b=[0.2, nan, nan], c=[0.9, 1.0, nan], d=[nan, nan, 0.5])
    result = evidence.against("a")
    assert np.isnan(result["b"]) and np.isnan(result["d"]) and result["c"] == 1
    assert evidence.decidable.to_dict() == {"a": True, "b": False, "c": True, "d": False}


def scores_of(**values: str) -> pd.DataFrame:
    rows = []
    for name, each in values.items():
        mean = float(np.mean([float(one.split("=")[1]) for one in each.split()]))
        rows.append(row(name, residual_last=mean, residual_last__each=each))
    return conform("scorecard", rows).to_pandas()


def test_what_is_written_alike_is_no_tie_and_noise_equals_noise() -> None:
    """2e-6 and 1e-4 were both written 0.000, and tied; on the scale of their decades they are far apart."""
    rows = scores_of(
        a="0=2e-6 1=3e-6 2=2e-6", b="0=1e-4 1=2e-4 2=1e-4", c="0=1e-16 1=2e-16 2=3e-17", d="0=2e-17 1=0 2=1e-17"
    )
    headline, setting = by_name("residual_last"), settings_in(rows)[0]
    shades = shade(rows, headline, setting).tolist()
    assert shades[2] == shades[3] < shades[0] < shades[1]
    assert set(find_extreme(rows, headline, setting, most=False).architecture) == {"c", "d"}
    assert set(find_extreme(rows, headline, setting, most=True).architecture) == {"b"}


def test_a_tie_counts_half_of_a_shade() -> None:
    """Ties are not transitive: b ties with a and with c, and a keeps more than c. A row whose seeds disagree was as dark as the best."""
    rows = scores_of(a="0=0.9 1=0.91 2=0.92", b="0=0.5 1=0.9 2=0.99", c="0=0.8 1=0.81 2=0.82")
    shades = shade(rows, by_name("residual_last"), settings_in(rows)[0]).tolist()
    assert shades == pytest.approx([5 / 6, 4 / 6, 3 / 6])


def test_one_seed_is_not_shaded() -> None:
    rows = scores_of(a="0=0.5", b="0=0.1")
    assert shade(rows, by_name("residual_last"), settings_in(rows)[0]).tolist() == [0, 0]


def test_readings_of_a_clock_have_the_interval_of_their_median() -> None:
    """Of nine readings the second and the eighth: 1 - 2 * (1 + 9) / 2^9 = 96%."""
    low, high = span_readings(pd.DataFrame([[9.0, 1, 2, 3, 4, 5, 6, 7, 8], [5.0, 1, 2, 3, 4] + [float("nan")] * 4]))
    assert (low.tolist(), high.tolist()) == ([2, 1], [8, 5])


def test_more_seeds_of_one_turn_no_order_round() -> None:
    """A row that another beats on every seed that both have was named beside it, "a tie": its mean was of fewer seeds."""
    nan = float("nan")
    evidence = seeds_of(one=[0.80, 0.81, 0.79, 0.95, 0.95], two=[0.82, 0.835, 0.81, nan, nan])
    assert (
        evidence.values.mean(axis=1)["two"] < evidence.values.mean(axis=1)["one"]
        and evidence.against("two")["one"] == -1
    )
    assert evidence.unbeaten(most=False) == ["one"] and evidence.unbeaten(most=True) == ["two"]


def test_who_is_beaten_by_any_other_is_not_first() -> None:
    rng = np.random.default_rng(0)
    values = {name: list(rng.normal(mean, 0.1, 5)) for name, mean in (("a", 0.5), ("b", 0.5), ("c", 0.9), ("d", 0.1))}
    evidence = seeds_of(**values)
    for most in (True, False):
        first = evidence.unbeaten(most=most)
        for name in values:
            beaten = any(evidence.against(name)[other] == (1 if most else -1) for other in values)
            assert (name in first) == (not beaten)
