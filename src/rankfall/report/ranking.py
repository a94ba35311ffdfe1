"""Compare numbers of one setting: which may be compared, which tie, which are not decided, and which keep most.

A seed gives every architecture of a setting the same data, the same order of them and the same stream of initial values. So two
architectures are compared seed by seed, over the seeds that both have: they tie where the 95% interval of the mean difference (Student's t)
contains zero. With one shared seed there is no interval, and nothing is decided. Residuals are compared by their logarithms, and rounding
noise equals rounding noise. Numbers without seeds (of components, of a clock) have intervals of their own, and tie where these overlap.

Page, figures, scorecard, sentences and captions all ask `Evidence.against`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankfall.annotations import DataFrame, Series
from rankfall.report.headlines import Headline
from rankfall.report.labels import join, many
from rankfall.report.lines import FLOOR
from rankfall.report.looks import label
from rankfall.report.settings import NAMED, Setting, check_one
from rankfall.report.written import write_float

LEVEL = 0.95  # of an interval
FEWEST = 2  # shared seeds of an interval
ROUNDING = 1e-9  # of the numbers themselves: a difference of less is their rounding
SHARED = ("panel", "task", "training", "depth", "seed")  # what two lines of a figure can have in common
UNDECIDED = "one seed: not decided"
UNSHARED = "fewer than two shared seeds: not decided"


@dataclass(frozen=True)
class Evidence:
    """Numbers that are compared. `values`: a row a name, a column a seed, on the scale on which they are compared; `low` and `high`: their
    own intervals, where numbers have no seeds; `least`: a smaller difference is none."""

    values: DataFrame
    low: Series | None = None
    high: Series | None = None
    least: float = 0.0

    def against(self, name: Any) -> Series:
        """Compare every row with one of them: 1 where it lies above, -1 below, 0 where the two tie, NaN where nothing is decided."""
        if self.low is not None and self.high is not None:
            above, below = self.low - self.high[name], self.low[name] - self.high
            return (above > self.least).astype(float) - (below > self.least)
        found = sides(self.values.sub(self.values.loc[name], axis=1), self.values.abs().max(axis=1))
        found[name] = 0.0
        return found

    @property
    def level(self) -> Series:
        """The mean of each row, by which rows are ordered."""
        return self.values.mean(axis=1)

    @property
    def decidable(self) -> Series:
        """Whether a row has enough seeds for an interval; a number with an interval of its own needs none."""
        return (self.values.notna().sum(axis=1) >= FEWEST) | (self.low is not None)


def sides(apart: DataFrame, size: Series) -> Series:
    """On which side of zero the mean of each row lies: 1 or -1 where its interval leaves zero out, 0 where it does not, NaN where there
    are too few numbers for an interval. `size`: of the numbers whose differences these are."""
    import numpy as np
    from scipy.special import stdtrit

    count, mean = apart.notna().sum(axis=1), apart.mean(axis=1)
    free = (count - 1).clip(lower=1)
    reach = apart.std(axis=1) * stdtrit(free.to_numpy(dtype=float), (1 + LEVEL) / 2) / count.clip(lower=1) ** 0.5
    side = np.sign(mean).where(mean.abs() > reach.clip(lower=ROUNDING * size), 0.0)
    return side.where(count >= FEWEST)


def write_seeds(values: Mapping[int, float]) -> str:
    """The numbers of single seeds as a column of the scorecard has them."""
    return " ".join(f"{seed}={value!r}" for seed, value in sorted(values.items()))


def read_seeds(text: Any) -> dict[int, float]:
    """What `write_seeds` has written; nothing where there is none."""
    pairs = (one.split("=") for one in text.split()) if isinstance(text, str) else ()
    return {int(seed): float(value) for seed, value in pairs}


def weigh(rows: DataFrame, headline: Headline) -> Evidence:
    """The evidence of rows of the scorecard, by the places of the rows."""
    import numpy as np
    import pandas as pd

    number = rows[headline.name].astype(float)
    if headline.components:
        reach = rows[f"{headline.name}_deviation"].astype(float).fillna(0.0)
        return Evidence(number.to_frame(), number - reach, number + reach, headline.least)
    each = [read_seeds(text) for text in rows[f"{headline.name}_each"]]
    columns = sorted({seed for one in each for seed in one})
    values = pd.DataFrame([[one.get(seed, np.nan) for seed in columns] for one in each], rows.index, columns, float)
    if headline.counted != "seed":
        return Evidence(values, *span_readings(values))
    if headline.scale == "log":
        values = np.log10(values.clip(lower=FLOOR))
        if "floor" in headline.beside:
            noise = (rows[f"{headline.name}_floor"].astype(float) == 1).to_numpy()
            values = values.where(~noise[:, None] | values.isna(), np.log10(FLOOR))
    return Evidence(values)


def span_readings(values: DataFrame) -> tuple[Series, Series]:
    """The interval of each row's median by its order statistics, as near 95% as so many readings allow, at least."""
    import numpy as np
    import pandas as pd
    from scipy.special import bdtrik

    ends = []
    for readings in np.sort(values.to_numpy(), axis=1):  # NaN last
        known = readings[~np.isnan(readings)]
        outside = int(bdtrik((1 - LEVEL) / 2, len(known), 0.5)) if len(known) > 1 else 0
        ends.append((known[outside], known[-1 - outside]) if len(known) else (np.nan, np.nan))
    found = pd.DataFrame(ends, values.index, ["low", "high"])
    return found.low, found.high


def with_number(rows: DataFrame, headline: Headline, setting: Setting) -> DataFrame:
    """The rows that have this number."""
    check_one(rows, setting)
    return rows[rows[headline.name].notna()]


def split_decidable(rows: DataFrame, headline: Headline) -> tuple[DataFrame, DataFrame]:
    """The rows that can be ranked, and those of one seed; all are of the second kind where fewer than two can be ranked."""
    can = weigh(rows, headline).decidable
    return (rows[can], rows[~can]) if can.sum() >= 2 or len(rows) == 1 else (rows[:0], rows)


def shade(rows: DataFrame, headline: Headline, setting: Setting) -> Series:
    """From above 0 for what loses most to 1 for what keeps most: by the share of the others that keep less, so that one outlier does not
    hide the rest; those that tie, or are not told apart, count half. 0 where neither end is better, and for what is compared with none."""
    shades = rows[headline.name].astype(float) * 0.0
    ranked, _ = split_decidable(with_number(rows, headline, setting), headline)
    if headline.good is None or len(ranked) < 2:
        return shades
    evidence, worse = weigh(ranked, headline), -1.0 if headline.good == "high" else 1.0
    for place in ranked.index:
        found = evidence.against(place).fillna(0.0)
        shades[place] = ((found == worse).sum() + ((found == 0).sum() + 1) / 2) / len(ranked)
    return shades


def find_extreme(rows: DataFrame, headline: Headline, setting: Setting, *, most: bool) -> DataFrame:
    """The row with the most (or least) of a number, and after it all that are not told from it. `rows`: such as can be ranked."""
    known = with_number(rows, headline, setting)
    evidence = weigh(known, headline)
    ordered = known.assign(level=evidence.level).sort_values(
        ["level", "architecture", "variant"], ascending=[not most, True, True]
    )
    found = evidence.against(ordered.index[0])[ordered.index]
    return known.loc[ordered.index[found != (-1.0 if most else 1.0)]]


def say_standing(rows: DataFrame, headline: Headline) -> str:
    """Why rows of which none is first are named together: `a tie`, or that nothing is decided."""
    evidence = weigh(rows, headline)
    if not evidence.decidable.any():
        return UNDECIDED
    return UNSHARED if evidence.against(rows.index[0]).isna().any() else "a tie"


def gather(rows: DataFrame, value: str, by: str = "architecture") -> Evidence:
    """The evidence of rows of a figure, by the names of its lines: a column for each seed, or for each panel, task, training, depth and
    seed where lines have several of them. Other rows of one such column are averaged."""
    lines = rows[by].astype(str)
    varied = [
        name for name in SHARED if name in rows and (name == "seed" or rows.groupby(lines)[name].nunique().max() > 1)
    ]
    known = rows.assign(**{value: rows[value].astype(float), "seed": rows.seed.fillna(-1)}, line=lines)
    each = known.groupby(["line", *varied], observed=True)[value].mean()
    return Evidence(each.unstack(varied).dropna(how="all"))


def by_setting(
    rows: DataFrame, settings: Mapping[str, str], say: Callable[[DataFrame], str], by: str = "architecture"
) -> str:
    """What `say` says of rows: of those of one setting at a time, where lines have several (`settings.differences`)."""
    words = rows[by].astype(str).map(lambda name: settings.get(name, ""))
    if words.nunique() <= 1:
        return say(rows)
    said = [f"with {setting}: {say(part)}" for setting, part in rows.groupby(words)]
    return "; ".join(said[:NAMED] + [f"{many(len(said) - NAMED, 'other setting')}"] * (len(said) > NAMED))


def average(rows: DataFrame, value: str, by: str) -> DataFrame:
    """`mean` and `std` of each name over its seeds. `rows`: one a name and seed."""
    known = rows.assign(**{value: rows[value].astype(float)})
    return known.groupby(by, observed=True)[value].agg(["mean", "std"]).dropna(subset="mean")


def say_mean(mean: float, deviation: float, digits: int) -> str:
    """A mean with its deviation over seeds, where there are several and it can be seen."""
    spread = f"{deviation:.{digits}f}" if deviation == deviation else ""
    return write_float(mean, digits) + (f" ± {spread}" if spread.strip("0.") else "")


def say_span(values: Iterable[float], write: Callable[[float], str]) -> str:
    """The one value of all as written, or the least and the largest: `0.42 to 0.80`. Nothing where there is none."""
    known = sorted(float(value) for value in values if value == value)
    if not known:
        return ""
    least, most = write(known[0]), write(known[-1])
    return least if least == most else f"{least} to {most}"


def find_first(evidence: Evidence, *, most: bool) -> list[str]:
    """The name with the most (or least), and after it all that are not told from it; none where nothing can be ranked."""
    level = evidence.level[evidence.decidable].sort_values(ascending=not most, kind="stable")
    if (len(level) < 2 and len(evidence.values) > 1) or not len(level):
        return []
    found = evidence.against(level.index[0])[level.index]
    return [str(name) for name in level.index[found != (-1.0 if most else 1.0)]]


def say_names(evidence: Evidence, names: Sequence[str], write: Callable[[float], str]) -> str:
    """Names with what they have: `A (0.41)`, or `A and B (0.40 to 0.41, a tie)`."""
    level = evidence.level[list(names)]
    undecided = evidence.against(names[0])[list(names)].isna().any()
    why = f", {UNSHARED if undecided else 'a tie'}" if len(names) > 1 else ""
    return f"{join(map(label, names))} ({say_span(level, write)}{why})"


def say_undecided(evidence: Evidence, write: Callable[[float], str]) -> str:
    """The numbers of lines of one seed, in order: `0.41 in A, 0.40 in B (one seed: not decided)`."""
    level = evidence.level[~evidence.decidable].sort_values(ascending=False, kind="stable")
    listed = [f"{write(value)} in {label(name)}" for name, value in level.items()]
    listed = listed[:NAMED] + [f"{len(listed) - NAMED} more"] * (len(listed) > NAMED)
    return f"{', '.join(listed)} ({UNDECIDED})"


def say_extreme(evidence: Evidence, write: Callable[[float], str], word: str, *, most: bool) -> str:
    """For a caption: who has the most (or least), behind its word: `best in A (0.41)`. Only the numbers where nothing is decided."""
    if not len(evidence.values):
        return "none"
    if len(evidence.values) == 1:
        (name,) = evidence.values.index
        return f"in {label(name)} ({write(evidence.level[name])})"
    names = find_first(evidence, most=most)
    return (
        f"{word} in {say_names(evidence, names, write)}{say_rest(evidence, write)}"
        if names
        else say_undecided(evidence, write)
    )


def say_ends(evidence: Evidence, write: Callable[[float], str], most: str, least: str, *, high: bool = True) -> str:
    """For a caption: who has the most and who the least, each behind its word: `most in A (0.41) and least in B (0.10)`. `high`: whether
    the most comes first. Who is in both is named once."""
    words = (most, least) if high else (least, most)
    first, last = (find_first(evidence, most=end) for end in (high, not high))
    if len(evidence.values) < 2 or not first:
        return say_extreme(evidence, write, words[0], most=high)
    if len(first) == evidence.decidable.sum():
        return f"alike in {say_names(evidence, first, write)}{say_rest(evidence, write)}"
    said = f"{words[0]} in {say_names(evidence, first, write)}"
    if not set(first) & set(last):
        said += f" and {words[1]} in {say_names(evidence, last, write)}"
    return said + say_rest(evidence, write)


def say_rest(evidence: Evidence, write: Callable[[float], str]) -> str:
    """What is not ranked beside lines that are."""
    return f"; {say_undecided(evidence, write)}" if not evidence.decidable.all() else ""
