"""Texts for captions on what a figure shows and omits: the number of seeds of each line, and the requested networks and values that are not
drawn, with the reason."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rankfall.annotations import DataFrame, Series
from rankfall.report.labels import many
from rankfall.report.looks import label
from rankfall.report.processors import describe_mixture

FATES = {"diverged": "diverged", "failed": "failed", "missing": "not computed yet"}
NAMED = 6  # largest number of items that are listed
NOTHING = "nothing of it can be drawn"
REASON = "{}_reason"  # the column with the reason why another column has no value


@dataclass(frozen=True)
class Account:
    """The seeds and omissions of a figure. `seeds`: the number of seeds of lines, "6 seeds (l2 5)"; `several`: whether a line has more than
    one; `left_out`: a sentence on what is not drawn, preceded by a space, or an empty string."""

    seeds: str
    several: bool
    left_out: str

    def with_bands(self, bands: str = "bands one standard deviation over seeds") -> str:
        """Return the seeds, followed by the meaning of the bands if a line has several seeds."""
        return f"{self.seeds}, {bands}" if self.several else self.seeds


def account(
    whole: DataFrame,
    drawn: DataFrame,
    by: Sequence[str],
    value: str = "",
    only_depth: int | None = None,
    why: str = NOTHING,
) -> Account:
    """Account for the networks and values of a figure.

    `whole`: all rows that were requested, of networks with any status; `drawn`: the rows that are drawn, with their `key`; `by`: the
    columns that distinguish lines; `value`: the column that is drawn, null if a number does not exist; `only_depth`: the depth of all drawn
    networks, if the figure has a single one; `why`: the reason why a network that is done is not drawn although its depth is."""
    by = list(by)
    shown = drawn[drawn[value].notna()] if value else drawn
    cells = whole.drop_duplicates("key")
    varied = [column for column in by if cells[column].nunique(dropna=False) > 1] or by[:1]
    gone = [
        *absent(cells, drawn, varied, only_depth, why),
        *(valueless(drawn[drawn[value].isna()], value, varied) if value else ()),
    ]
    listed = merge_lines(gone)
    listed = listed[:NAMED] + [f"{len(listed) - NAMED} more"] * (len(listed) > NAMED)
    kinds = describe_mixture(shown)
    several = bool((count_seeds(shown, by) > 1).any())
    return Account(
        seeds(shown, by) + f" {kinds}" * bool(kinds), several, f" Not drawn: {'; '.join(listed)}." if gone else ""
    )


def describe_missing(rows: DataFrame, value: str, by: Sequence[str]) -> str:
    """Return a sentence on missing values of a table without cells, such as one of models, preceded by a space; empty if all exist."""
    gone = merge_lines(list(valueless(rows[rows[value].isna()], value, list(by))))
    return f" Not drawn: {'; '.join(gone)}." if gone else ""


def seeds(drawn: DataFrame, by: Sequence[str]) -> str:
    """Return the most frequent number of seeds of a line, and the lines that have another number."""
    counts = count_seeds(drawn, by)
    if counts.empty:
        return "0 seeds"
    common = int(counts.mode().max())
    varied = [level for level in counts.index.names if counts.index.get_level_values(level).nunique() > 1]
    others = [
        f"{name_of(dict(zip(counts.index.names, at if isinstance(at, tuple) else (at,))), varied or by)} {count}"
        for at, count in counts.items()
        if count != common
    ]
    said = others[:NAMED] + [f"{len(others) - NAMED} more with other numbers"] * (len(others) > NAMED)
    exceptions = f" ({', '.join(said)})" if said else ""
    return f"{many(common, 'seed')}{exceptions}"


def count_seeds(drawn: DataFrame, by: Sequence[str]) -> Series:
    """Count the seeds of each line."""
    return drawn.groupby(list(by), observed=True).seed.nunique()


def absent(
    cells: DataFrame, drawn: DataFrame, by: list[str], only_depth: int | None = None, why: str = NOTHING
) -> Iterator[tuple[str, str, str]]:
    """Yield (number, line, reason) of networks that are not drawn, by line and status, and by depth if a line has several depths."""
    gone = cells[~cells.key.isin(drawn.key)]
    fates = gone.assign(fate=gone.status.map(FATES).fillna(""))
    for at, part in fates.groupby([*dict.fromkeys([*by, "depth"]), "fate"], sort=True, observed=True):
        *names, fate = at
        line, depth = dict(zip(by, names)), part.depth.iloc[0]
        same = cells[(cells[by] == list(line.values())).all(axis=1)]
        among = same[same.depth == depth]
        elsewhere = only_depth not in (None, depth)
        other = elsewhere or same.depth.nunique() > 1
        name, what = name_of(line, by), "network" if len(among) == 1 else "networks"
        how_many = f"all {len(part)}" if len(part) == len(among) else f"{len(part)} of {len(among)}"
        at_depth = f" of depth {depth}" if other else ""
        if fate:
            yield f"{how_many} {what}{at_depth}", name, f"({fate})"
        elif elsewhere or (
            only_depth is None and (there := set(drawn[drawn.key.isin(same.key)].depth)) and depth not in there
        ):
            yield f"{len(part)} {what}{at_depth}", name, "(another depth is drawn)"
        else:
            yield f"{how_many} {what}{at_depth}", name, f"({why})"


def valueless(rows: DataFrame, value: str, by: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (number, line, reason) of values that do not exist, with the reason from the table if it has one."""
    if rows.empty:
        return
    rows = rows.assign(why="")
    for column in (REASON.format(value), "value_reason", "refused"):
        if column in rows:
            rows["why"] = rows.why.where(rows.why != "", rows[column].fillna(""))
    for at, part in rows.groupby([*by, "why"], sort=True, observed=True):
        *names, why = at
        yield many(len(part), "value"), name_of(dict(zip(by, names)), by), f"({why})" if why else "(null)"


def merge_lines(gone: list[tuple[str, str, str]]) -> list[str]:
    """Merge entries that differ only in their line."""
    found: dict[tuple[str, str], list[str]] = {}
    for before, name, after in gone:
        found.setdefault((before, after), []).append(name)
    return [
        f"{before} {'each of' if len(names) > 1 else 'of'} {', '.join(names)} {after}"
        for (before, after), names in found.items()
    ]


def name_of(line: dict[Any, Any], by: Sequence[str]) -> str:
    """Return the name of a line, such as `SAN (converged)`. Columns other than architectures, tasks and the like show the column's name."""
    plain = ("architecture", "task", "training", "panel", "line", "network", "variant")
    first, *others = (label(line[name]) if name in plain else f"{name} {label(line[name])}" for name in by)
    return f"{first} ({', '.join(others)})" if others and all(others) else first
