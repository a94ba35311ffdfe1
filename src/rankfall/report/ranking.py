"""Numbers of one setting beside each other: which may be compared, which tie, and which keep most.

Two numbers tie where they differ by no more than the larger of their deviations over seeds, or are the same as written. Times are compared
where the same engine took them on the same machine with as many networks at once. Every function is given the setting of its rows, and
raises where they have several.
"""

from collections.abc import Callable, Iterable, Mapping

from rankfall.annotations import DataFrame, Series
from rankfall.report.headlines import Headline
from rankfall.report.labels import join, many
from rankfall.report.looks import label
from rankfall.report.settings import NAMED, Setting, check_one


def split_comparable(rows: DataFrame, headline: Headline, setting: Setting) -> list[DataFrame]:
    """The rows with this number, in parts whose numbers may be compared, the largest first."""
    check_one(rows, setting)
    known = rows[rows[headline.name].notna()]
    if not len(known):
        return []
    if not headline.compared_within:
        return [known]
    parts = [part for _, part in known.groupby(f"{headline.name}_by", sort=True)]
    return sorted(parts, key=len, reverse=True)


def shade(rows: DataFrame, headline: Headline, setting: Setting) -> Series:
    """0 for what loses most of those it is compared with, 1 for what keeps most; by the share of those that keep less, so that one
    outlier does not hide the rest; those that tie count half. 0 too where neither end is better, and for a number that is compared with
    none."""
    shades = rows[headline.name] * 0.0
    for part in split_comparable(rows, headline, setting):
        if headline.good is None or len(part) < 2:
            continue
        for place, row in part.iterrows():
            tie = ties(part, row, headline)
            value = row[headline.name]
            worse = part[headline.name] < value if headline.good == "high" else part[headline.name] > value
            shades[place] = ((worse & ~tie).sum() + (tie.sum() + 1) / 2) / len(part)
    return shades


def find_extreme(
    rows: DataFrame, headline: Headline, setting: Setting, *, most: bool, written: Callable[[float], str] | None = None
) -> DataFrame:
    """The row with the most (or least) of a number, and after it all rows that tie with it. `rows`: comparable ones, with numbers."""
    (part,) = split_comparable(rows, headline, setting)
    ordered = part.sort_values([headline.name, "architecture", "variant"], ascending=[not most, True, True])
    return ordered[ties(ordered, ordered.iloc[0], headline, written)]


def ties(rows: DataFrame, one: Series, headline: Headline, written: Callable[[float], str] | None = None) -> Series:
    """Whether each row's number ties with that of `one`. `written`: a number as the reader sees it."""
    write = written or (lambda value: f"{value:.{headline.digits}f}")
    deviation = f"{headline.name}_deviation"
    value = one[headline.name]
    near = (rows[headline.name] - value).abs() <= headline.near * rows[headline.name].abs().clip(lower=abs(value))
    return near | find_ties(rows[headline.name], rows[deviation].astype(float), value, one[deviation], write)


def find_ties(
    values: Series, deviations: Series, value: float, deviation: float | None, write: Callable[[float], str]
) -> Series:
    """Whether each value ties with one, whose deviation may not be known."""
    own = 0.0 if deviation is None or deviation != deviation else deviation
    same = values.map(write) == write(value)
    return same | ((values - value).abs() <= deviations.fillna(0.0).clip(lower=own))


def say_extreme(rows: DataFrame, value: str, write: Callable[[float], str], *, most: bool) -> tuple[list[str], str]:
    """For a caption: the architectures that have the most (or least), and in words with what they have, `A (0.41)` or `A and B (0.40 to
    0.41, a tie)`. `rows`: one an architecture and seed."""
    return say_first(average(rows, value, "architecture"), write, most=most)


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
    return f"{mean:.{digits}f}" + (f" ± {spread}" if spread.strip("0.") else "")


def say_span(values: Iterable[float], write: Callable[[float], str]) -> str:
    """The one value of all as written, or the least and the largest: `0.42 to 0.80`. Nothing where there is none."""
    known = sorted(float(value) for value in values if value == value)
    if not known:
        return ""
    least, most = write(known[0]), write(known[-1])
    return least if least == most else f"{least} to {most}"


def say_first(found: DataFrame, write: Callable[[float], str], *, most: bool) -> tuple[list[str], str]:
    """The same of a `mean` and `std` for each name."""
    if not len(found):
        return [], "none"
    found = found.sort_values("mean", ascending=not most, kind="stable")
    first = found.iloc[0]
    found = found[find_ties(found["mean"], found["std"], first["mean"], first["std"], write)]
    names = [str(name) for name in found.index]
    low, high = write(found["mean"].min()), write(found["mean"].max())
    span = low if low == high else f"{low} to {high}"
    return names, f"{join(map(label, names))} ({span}{', a tie' * (len(names) > 1)})"


def say_ends(found: DataFrame, write: Callable[[float], str], most: str, least: str, *, high: bool = True) -> str:
    """Who has the most and who the least, each behind its word: `most in A (0.41) and least in B (0.10)`. The first alone where
    the two tie, and no word where there is one name. `high`: whether the most comes first."""
    names, said = say_first(found, write, most=high)
    if len(names) == len(found):
        return f"{'alike ' * (len(names) > 1)}in {said}"
    others, last = say_first(found, write, most=not high)
    return f"{most if high else least} in {said}" + (
        "" if set(names) & set(others) else f" and {least if high else most} in {last}"
    )
