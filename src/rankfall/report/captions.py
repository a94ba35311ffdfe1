"""Sentences that the captions of figures share: what lines and bands are, where lines end, and what is not drawn."""

from collections.abc import Callable, Sequence
from typing import Any

from rankfall.annotations import DataFrame, Series
from rankfall.report.labels import many
from rankfall.report.looks import label
from rankfall.report.processors import describe_mixture
from rankfall.report.ranking import average, say_mean
from rankfall.report.settings import differences

FATES = {"diverged": "diverged", "failed": "failed", "missing": "not computed yet"}
NAMED = 6  # largest number of lines that are listed
BAND = "one standard deviation"
OTHER = "another depth is drawn"


def describe_lines(drawn: DataFrame, by: Sequence[str], value: str = "", band: str = BAND, mean: str = "means") -> str:
    """Return "means over 5 seeds, bands one standard deviation". `by`: the columns that distinguish lines; `value`: the column that is
    drawn; an empty `band` leaves out the bands."""
    shown = drawn[drawn[value].notna()] if value else drawn
    counts = shown.groupby(list(by), observed=True).seed.nunique()
    least, most = (int(counts.min()), int(counts.max())) if len(counts) else (0, 0)
    seeds = many(most, "seed") if least == most else f"{least} to {many(most, 'seed')}"
    mixture = describe_mixture(shown)
    return f"{mean} over {seeds}{f' {mixture}' * bool(mixture)}{f', bands {band}' * bool(band and most > 1)}"


def describe_ends(
    rows: DataFrame, value: str, write: Callable[[float], str] | int, by: str = "architecture", settings: bool = True
) -> str:
    """Return the lowest and the highest line at the end of an axis: "from 0.02 ± 0.01 (A) to 0.41 ± 0.03 (B)".

    `rows`: those at the end, one per line and seed; `write`: digits of a mean with its deviation, or a function for the mean alone;
    `settings`: whether lines may have several settings, whose numbers are not compared.
    """
    means = average(rows, value, by).sort_values("mean", kind="stable")
    if settings and len(set(differences(rows, by).values())) > 1:
        return "not compared, since lines have different settings"
    ends = [
        say_mean(one["mean"], one["std"], write) if isinstance(write, int) else write(one["mean"])
        for _, one in means.iterrows()
    ]
    words = [f"{end} ({label(name)})" for end, name in zip(ends, means.index)]
    if len(words) > 1:
        return f"{ends[0]} in all" if ends[0] == ends[-1] else f"from {words[0]} to {words[-1]}"
    return words[0] if words else "unknown"


def describe_missing(
    drawn: DataFrame,
    by: Sequence[str],
    value: str = "",
    whole: DataFrame | None = None,
    why: str = "nothing to draw",
) -> str:
    """Return a sentence on what is not drawn, preceded by a space; empty if everything is drawn.

    `drawn`: the rows that are drawn, and those whose `value` is null; `by`: the columns that distinguish lines; `whole`: all rows that were
    requested, of networks with any status; `why`: why a finished network is not drawn although its depth is.
    """
    lost: list[str] = []
    if whole is not None:
        cells = whole.drop_duplicates("key")
        gone = cells[~cells.key.isin(drawn.key)]
        reasons = [
            FATES.get(cell.status) or (why if is_drawn_at(cell, drawn, by) else OTHER) for _, cell in gone.iterrows()
        ]
        lost += count_by_reason(gone.assign(why=reasons), "network", by)
    if value:
        null = drawn[drawn[value].isna()].assign(why="")
        for column in (f"{value}_reason", "value_reason", "refused"):
            if column in null:
                null = null.assign(why=null.why.where(null.why != "", null[column].fillna("")))
        lost += count_by_reason(null, "value", by)
    return f" Not drawn: {'; '.join(lost)}." if lost else ""


def is_drawn_at(cell: Series, drawn: DataFrame, by: Sequence[str]) -> bool:
    """Return whether networks of a cell's depth are drawn, in its own line if that is drawn."""
    line = drawn[(drawn[list(by)] == list(cell[list(by)])).all(axis=1)]
    return cell.depth in set((line if len(line) else drawn).depth)


def count_by_reason(rows: DataFrame, what: str, by: Sequence[str]) -> list[str]:
    """Return "3 networks (diverged: A 1, B 2)" for each reason in the column `why`."""
    varied = [name for name in by if rows[name].nunique(dropna=False) > 1] or list(by)[:1]
    found = []
    for why, part in rows.groupby("why", sort=False):
        counts = part.groupby(varied, sort=True, dropna=False).size()
        lines = [f"{name_line(line, varied)} {count}" for line, count in counts.items()]
        lines = lines[:NAMED] + [f"{len(lines) - NAMED} more lines"] * (len(lines) > NAMED)
        found.append(f"{many(len(part), what)} ({f'{why}: ' * bool(why)}{', '.join(lines)})")
    return found


def name_line(line: Any, by: Sequence[str]) -> str:
    """Return the name of a line; values that are not names stand after their column."""
    values = line if isinstance(line, tuple) else (line,)
    return " ".join(label(one) if isinstance(one, str) else f"{column} {one}" for column, one in zip(by, values))
