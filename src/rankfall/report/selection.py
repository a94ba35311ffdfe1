"""The rows of a table that a figure draws, and the check that a mean over seeds has one network for each seed."""

from collections.abc import Mapping
from typing import Any

from rankfall.annotations import DataFrame
from rankfall.errors import RankfallError
from rankfall.filters import as_list, matches_in_table, parts
from rankfall.report.schema import CELL_COLUMNS

NAMES = ("key", "seed", "status", "reason")
NAMED = ("task", "architecture", "training", "depth")
UNFINISHED = "unfinished"
SPECS = tuple(column.name for column in CELL_COLUMNS if column.name not in NAMES and not column.provenance)


def select(table: DataFrame, where: Mapping[str, Any]) -> DataFrame:
    """The rows that have these values in these columns; of a list any."""
    for column, value in where.items():
        same = table[column].isin(value) if isinstance(value, list) else table[column] == value
        table = table[same.fillna(False).astype(bool)]
    return table


def select_finished(table: DataFrame, figure: str, where: dict[str, Any]) -> DataFrame:
    """The rows of cells that are done, narrowed by column to a value or a list of values: `{depth: 24, norm: [none, layer]}`."""
    ended = table[table.status != "done"]
    table = table[table.status == "done"]
    # Values that only such networks have: a figure that names them is drawn without them, and its caption says so.
    table.attrs[UNFINISHED] = {name: frozenset(ended[name].unique()) for name in NAMED if name in ended}
    for column, wanted in where.items():
        if column not in table:
            raise RankfallError(f"figure {figure}: where.{column}: there is no such column in its table")
        allowed = [
            value for value in table[column].unique() if any(matches_in_table(value, item) for item in as_list(wanted))
        ]
        if not allowed:
            found = ", ".join(map(str, table[column].unique()))
            raise RankfallError(
                f"figure {figure}: no finished cell has {describe_filter({column: wanted})}; there is: {found or 'nothing'}"
            )
        table = table[table[column].isin(allowed)]
    return table


def select_asked(table: DataFrame, where: dict[str, Any], **columns: Any) -> DataFrame:
    """The rows that a figure asks for, whatever became of their networks: those of a filter, and of columns with a value or a list (empty:
    any)."""
    for column, wanted in {
        **where,
        **{name: value for name, value in columns.items() if value not in ([], None)},
    }.items():
        values = [
            value for value in table[column].unique() if any(matches_in_table(value, one) for one in as_list(wanted))
        ]
        table = table[table[column].isin(values)]
    return table


def choose(
    table: DataFrame, figure: str, where: dict[str, Any], **columns: Any
) -> tuple[DataFrame, DataFrame, list[Any]]:
    """The rows of finished cells that a figure draws, narrowed by one column after another: to any of a list (empty: all), to a value,
    or to what most cells have (None). Beside them all rows that are asked for so, whatever became of their networks; and these values."""
    rows, values = select_finished(table, figure, where), []
    for column, wanted in columns.items():
        if isinstance(wanted, list):
            rows = among(rows, figure, column, wanted)
        else:
            rows, columns[column] = one_of(rows, figure, column, wanted)
            values.append(columns[column])
    return rows, select_asked(table, where, **columns), values


def among(table: DataFrame, figure: str, column: str, wanted: list[Any]) -> DataFrame:
    """The rows with one of these values; all rows where no value is given. An error if a value does not occur, or there are no rows."""
    there = sorted(table[column].unique())
    for value in wanted:
        if value not in there and value not in table.attrs.get(UNFINISHED, {}).get(column, ()):
            raise RankfallError(
                f"figure {figure}: no finished cell has {column} {value}; there is: {', '.join(map(str, there)) or 'nothing'}"
            )
    chosen = table[table[column].isin(wanted)] if wanted else table
    if chosen.empty:
        raise RankfallError(f"figure {figure}: its table has no finished cell, so there is nothing to draw")
    return chosen


def one_of(table: DataFrame, figure: str, column: str, wanted: Any = None) -> tuple[DataFrame, Any]:
    """The rows with one value: what is asked for, or else what most cells have."""
    table = among(table, figure, column, [] if wanted is None else [wanted])
    cells = table.groupby(column).key.nunique()
    value = cells[cells == cells.max()].index.min()
    return table[table[column] == value], value


def deepest(table: DataFrame, figure: str, by: list[str]) -> DataFrame:
    """Of each line the networks with most layers, one a seed: a mean over depths is none over seeds."""
    return one_a_seed(table[table.depth == table.groupby(by).depth.transform("max")], figure, by)


def one_a_seed(table: DataFrame, figure: str, by: list[str]) -> DataFrame:
    """The same table; an error if several networks have the same seed and values of `by`. Any field of an architecture may be an axis, and
    a mean over different networks would look like one over seeds.
    """
    counts = table.groupby([*by, "seed"]).key.nunique()
    if len(counts) and counts.max() > 1:
        first = counts[counts > 1].index[0]
        mixed = table
        for column, value in zip([*by, "seed"], first):
            mixed = mixed[mixed[column] == value]
        differ = {
            column: sorted(mixed[column].map(str).unique())
            for column in mixed.columns.intersection(SPECS)
            if mixed[column].nunique(dropna=False) > 1
        }
        values = "; ".join(f"{column}: {', '.join(found)}" for column, found in differ.items())
        raise RankfallError(
            f"figure {figure}: {', '.join(map(str, first[:-1]))} is {int(counts.max())} networks a seed, which differ in {values}; "
            "pick one by the figure's `where`, or draw them apart (figure `sweep`: `lines`, `panels`)"
        )
    return table


def describe_filter(where: dict[str, Any]) -> str:
    """A filter in words."""
    asked = {column: [parts(value) for value in as_list(wanted)] for column, wanted in where.items()}
    return "; ".join(
        f"{column} " + ", ".join(" ".join([name, *options.values()]) for name, options in values)
        for column, values in asked.items()
    )


def init_first(trainings: Any) -> list[str]:
    """Names of trainings, untrained networks before all others."""
    return sorted({str(name) for name in trainings}, key=lambda name: (name != "init", name))
