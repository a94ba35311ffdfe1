"""Comparison of numbers of one setting: which are comparable, which tie, which are undecided, and which keep most.

A seed gives every architecture of a setting the same data in the same order and the same stream of initial values. Two architectures are
therefore compared seed by seed, over the seeds that both have. They tie if the 95% interval of the mean difference (Student's t) contains
zero. With one shared seed there is no interval, and the comparison is undecided. Residuals are compared by their logarithms, and all
rounding noise counts as equal. Numbers without seeds (of components, of a clock) have separate intervals, and tie if these overlap.

The page, the scorecard, its figure and sentences all use `Evidence.against`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rankfall.annotations import DataFrame, Series
from rankfall.report.headlines import Headline
from rankfall.report.labels import write_float
from rankfall.report.lines import FLOOR
from rankfall.report.settings import Setting, check_one

LEVEL = 0.95  # confidence level of an interval
FEWEST = 2  # least number of shared seeds for an interval
ROUNDING = 1e-9  # a relative difference up to this is rounding
UNDECIDED = "one seed: not decided"


@dataclass(frozen=True)
class Evidence:
    """Numbers to compare. `values`: a row per name and a column per seed, on the scale of the comparison; `low` and `high`: intervals of
    numbers without seeds; `least`: the largest difference that counts as none."""

    values: DataFrame
    low: Series | None = None
    high: Series | None = None
    least: float = 0.0

    def against(self, name: Any) -> Series:
        """Compare every row with the row `name`: 1 if it is above, -1 if below, 0 for a tie, NaN if undecided."""
        if self.low is not None and self.high is not None:
            above, below = self.low - self.high[name], self.low[name] - self.high
            return (above > self.least).astype(float) - (below > self.least)
        standing = sides(self.values.sub(self.values.loc[name], axis=1), self.values.abs().max(axis=1))
        standing[name] = 0.0
        return standing

    def unbeaten(self, *, most: bool) -> list[Any]:
        """Return the rows that no other row beats on the seeds that both have, by descending (or ascending) mean.

        The row with the extreme mean may not be among them: its mean may be of other seeds than those that it shares.
        """
        ordered = self.values.mean(axis=1).sort_values(ascending=not most, kind="stable").index
        better = 1.0 if most else -1.0
        best = [name for name in ordered if not (self.against(name) == better).any()]
        return best or list(ordered[:1])  # all are beaten where A beats B, B beats C and C beats A

    @property
    def decidable(self) -> Series:
        """Return for each row whether it has enough seeds for an interval; numbers with a separate interval need none."""
        return (self.values.notna().sum(axis=1) >= FEWEST) | (self.low is not None)


def sides(apart: DataFrame, size: Series) -> Series:
    """Return the side of zero of the mean of each row: 1 or -1 if its interval excludes zero, 0 if it includes zero, NaN if there are too
    few numbers for an interval. `size`: the magnitude of the numbers whose differences these are."""
    import numpy as np
    from scipy.special import stdtrit

    count, mean = apart.notna().sum(axis=1), apart.mean(axis=1)
    free = (count - 1).clip(lower=1)
    reach = apart.std(axis=1) * stdtrit(free.to_numpy(dtype=float), (1 + LEVEL) / 2) / count.clip(lower=1) ** 0.5
    side = np.sign(mean).where(mean.abs() > reach.clip(lower=ROUNDING * size), 0.0)
    return side.where(count >= FEWEST)


def write_seeds(values: Mapping[int, float]) -> str:
    """Return the numbers of single seeds as text for a column of the scorecard."""
    return " ".join(f"{seed}={value!r}" for seed, value in sorted(values.items()))


def read_seeds(text: Any) -> dict[int, float]:
    """Parse the text of `write_seeds`; a missing text gives no numbers."""
    pairs = (pair.split("=") for pair in text.split()) if isinstance(text, str) else ()
    return {int(seed): float(value) for seed, value in pairs}


def weigh(rows: DataFrame, headline: Headline) -> Evidence:
    """Return the evidence of rows of the scorecard, by their index."""
    import numpy as np
    import pandas as pd

    number = rows[headline.name].astype(float)
    if headline.components:
        reach = rows[f"{headline.name}_deviation"].astype(float).fillna(0.0)
        return Evidence(number.to_frame(), number - reach, number + reach, headline.least)
    readings = [read_seeds(text) for text in rows[f"{headline.name}_each"]]
    columns = sorted({seed for reading in readings for seed in reading})
    values = pd.DataFrame(
        [[reading.get(seed, np.nan) for seed in columns] for reading in readings], rows.index, columns, float
    )
    if headline.counted != "seed":
        return Evidence(values, *span_readings(values))
    if headline.scale == "log":
        values = np.log10(values.clip(lower=FLOOR))
        if "floor" in headline.beside:
            noise = (rows[f"{headline.name}_floor"].astype(float) == 1).to_numpy()
            values = values.where(~noise[:, None] | values.isna(), np.log10(FLOOR))
    return Evidence(values)


def span_readings(values: DataFrame) -> tuple[Series, Series]:
    """Return the interval of each row's median from its order statistics, with a level of at least 95% if there are enough readings."""
    import numpy as np
    import pandas as pd
    from scipy.special import bdtrik

    ends = []
    for readings in np.sort(values.to_numpy(), axis=1):  # NaN last
        numbers = readings[~np.isnan(readings)]
        outside = int(bdtrik((1 - LEVEL) / 2, len(numbers), 0.5)) if len(numbers) > 1 else 0
        ends.append((numbers[outside], numbers[-1 - outside]) if len(numbers) else (np.nan, np.nan))
    interval = pd.DataFrame(ends, values.index, ["low", "high"])
    return interval.low, interval.high


def with_number(rows: DataFrame, headline: Headline, setting: Setting) -> DataFrame:
    """Return the rows that have this number, after checking that they are of one setting."""
    check_one(rows, setting)
    return rows[rows[headline.name].notna()]


def split_decidable(rows: DataFrame, headline: Headline) -> tuple[DataFrame, DataFrame]:
    """Split rows into those that can be ranked and those that have a single seed. If fewer than two can be ranked, none is."""
    can = weigh(rows, headline).decidable
    return (rows[can], rows[~can]) if can.sum() >= 2 or len(rows) == 1 else (rows[:0], rows)


def shade(rows: DataFrame, headline: Headline, setting: Setting) -> Series:
    """Return shades from above 0 to 1: the share of rows that keep less, where a tie and an undecided comparison count half.

    So an outlier does not hide the rest, and a row of which nothing is known stands in the middle. The shade is 0 if neither end is better,
    and for rows that cannot be compared.
    """
    shades = rows[headline.name].astype(float) * 0.0
    ranked, _ = split_decidable(with_number(rows, headline, setting), headline)
    if headline.good is None or len(ranked) < 2:
        return shades
    evidence, worse = weigh(ranked, headline), -1.0 if headline.good == "high" else 1.0
    for name in ranked.index:
        comparison = evidence.against(name).fillna(0.0)
        shades[name] = ((comparison == worse).sum() + ((comparison == 0).sum() + 1) / 2) / len(ranked)
    return shades


def find_extreme(rows: DataFrame, headline: Headline, setting: Setting, *, most: bool) -> DataFrame:
    """Return the rows than which no row has more (or less) of a number. All `rows` can be ranked."""
    measured = with_number(rows, headline, setting).sort_values(["architecture", "variant"])
    return measured.loc[weigh(measured, headline).unbeaten(most=most)]


def say_standing(rows: DataFrame, headline: Headline) -> str:
    """Return why several rows share the first place: a tie, or too few shared seeds."""
    evidence = weigh(rows, headline)
    return "not decided" if any(evidence.against(row).isna().any() for row in rows.index) else "a tie"


def average(rows: DataFrame, value: str, by: str) -> DataFrame:
    """Return `mean` and `std` of each name over its seeds. `rows` has one row per name and seed."""
    numbers = rows.assign(**{value: rows[value].astype(float)})
    return numbers.groupby(by, observed=True)[value].agg(["mean", "std"]).dropna(subset="mean")


def say_mean(mean: float, deviation: float, digits: int) -> str:
    """Write a mean with its deviation over seeds, if there is one that is not zero at these digits."""
    spread = f"{deviation:.{digits}f}" if deviation == deviation else ""
    return write_float(mean, digits) + (f" ± {spread}" if spread.strip("0.") else "")


def say_span(values: Iterable[float], write: Callable[[float], str]) -> str:
    """Write the range of values: `0.42 to 0.80`, or a single number if both ends look the same; empty if there is no value."""
    numbers = sorted(float(value) for value in values if value == value)
    if not numbers:
        return ""
    least, most = write(numbers[0]), write(numbers[-1])
    return least if least == most else f"{least} to {most}"
