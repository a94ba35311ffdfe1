"""What a figure shows and what it leaves out, in words: how many seeds each line has, and every network and value that was asked for and is
not drawn, with what became of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rankfall.annotations import DataFrame, Series
from rankfall.report.labels import many
from rankfall.report.looks import label
from rankfall.report.processors import describe_mixture

FATES = {"diverged": "diverged", "failed": "failed", "missing": "not computed yet"}
NAMED = 6  # so many are named one by one
NOTHING = "nothing of it can be drawn"
REASON = "{}_reason"  # the column that says why another has no value


@dataclass(frozen=True)
class Account:
    """`seeds`: of each line, "6 seeds (l2 5)"; `several`: whether a line has more than one; `left_out`: a sentence on what is not drawn,
    with a space before it, or nothing."""

    seeds: str
    several: bool
    left_out: str

    def with_bands(self, bands: str = "bands one standard deviation over seeds") -> str:
        """The seeds, and what bands are, where there can be any."""
        return f"{self.seeds}, {bands}" if self.several else self.seeds


def account(
    whole: DataFrame,
    drawn: DataFrame,
    by: Sequence[str],
    value: str = "",
    only_depth: int | None = None,
    why: str = NOTHING,
) -> Account:
    """`whole`: all rows that were asked for, of networks with any fate; `drawn`: those of them that are drawn, with their `key`; `by`: the
    columns that tell lines apart; `value`: the column that is drawn, null where a number does not exist; `only_depth`: of all
    networks that are drawn, where a figure has one; `why` a network that is done is not drawn, where its depth is."""
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
    """Of a table without cells, such as one of models: a sentence on the values that do not exist, with a space before it, or nothing."""
    gone = merge_lines(list(valueless(rows[rows[value].isna()], value, list(by))))
    return f" Not drawn: {'; '.join(gone)}." if gone else ""


def seeds(drawn: DataFrame, by: Sequence[str]) -> str:
    """How many seeds lines have: the commonest number, and the lines that have another."""
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
    """Of each line."""
    return drawn.groupby(list(by), observed=True).seed.nunique()


def absent(
    cells: DataFrame, drawn: DataFrame, by: list[str], only_depth: int | None = None, why: str = NOTHING
) -> Iterator[tuple[str, str, str]]:
    """Networks without a row among those that are drawn: by line and fate, and by depth where a line's networks differ in it."""
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
    """Values that do not exist: how many of each line, and why where the table says."""
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
    """What is the same of several lines, once."""
    found: dict[tuple[str, str], list[str]] = {}
    for before, name, after in gone:
        found.setdefault((before, after), []).append(name)
    return [
        f"{before} {'each of' if len(names) > 1 else 'of'} {', '.join(names)} {after}"
        for (before, after), names in found.items()
    ]


def name_of(line: dict[Any, Any], by: Sequence[str]) -> str:
    """A line in words, `SAN (converged)`: architectures, tasks and trainings by name, other columns with theirs."""
    plain = ("architecture", "task", "training", "panel", "line", "network", "variant")
    first, *others = (label(line[name]) if name in plain else f"{name} {label(line[name])}" for name in by)
    return f"{first} ({', '.join(others)})" if others and all(others) else first
