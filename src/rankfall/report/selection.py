"""Selection of the rows of a table that a figure draws, and the check that a mean over seeds has one network per seed."""

from collections.abc import Mapping
from typing import Any

from rankfall.annotations import DataFrame, Series
from rankfall.errors import RankfallError
from rankfall.filters import as_list, matches_in_table, parts
from rankfall.report.schema import CELL_COLUMNS

NAMES = ("key", "seed", "status", "reason")
NAMED = ("task", "architecture", "training", "depth")
UNFINISHED = "unfinished"
SPECS = tuple(column.name for column in CELL_COLUMNS if column.name not in NAMES and not column.provenance)


def select(table: DataFrame, where: Mapping[str, Any]) -> DataFrame:
    """Return the rows with these values in these columns; a list matches any of its values."""
    for column, value in where.items():
        matching = table[column].isin(value) if isinstance(value, list) else table[column] == value
        table = table[matching.fillna(False).astype(bool)]
    return table


def select_matching(table: DataFrame, column: str, wanted: Any) -> DataFrame:
    """Return the rows with a value that matches a filter, which may be a list."""
    values = [
        value
        for value in table[column].unique()
        if any(matches_in_table(value, pattern) for pattern in as_list(wanted))
    ]
    return table[table[column].isin(values)]


def reasons_of(rows: DataFrame, column: str) -> Series:
    """Return why the values of a column are null, from the columns that may say it; an empty text if none does."""
    why: Series = rows.assign(why="").why
    for name in (f"{column}_reason", "value_reason", "refused"):
        if name in rows:
            why = why.where(why != "", rows[name].fillna(""))
    return why


def select_finished(table: DataFrame, figure: str, where: dict[str, Any]) -> DataFrame:
    """Return the rows of cells that are done and match a filter, column -> value or list of values: `{depth: 24, norm: [none, layer]}`."""
    ended = table[table.status != "done"]
    table = table[table.status == "done"]
    # Values of cells that are not done. A figure that names such a value is drawn without it, and its caption says so.
    table.attrs[UNFINISHED] = {name: frozenset(ended[name].unique()) for name in NAMED if name in ended}
    for column, wanted in where.items():
        if column not in table:
            raise RankfallError(f"figure {figure}: where.{column}: there is no such column in its table")
        matching = select_matching(table, column, wanted)
        if matching.empty:
            values = ", ".join(map(str, table[column].unique())) or "nothing"
            text = describe_filter({column: wanted})
            raise RankfallError(f"figure {figure}: no finished cell has {text}; there is: {values}")
        table = matching
    return table


def select_asked(table: DataFrame, where: dict[str, Any], **columns: Any) -> DataFrame:
    """Return the rows that a figure requests, whatever the status of their networks: those that match a filter, and columns with a value or
    a list (empty: any value)."""
    for column, wanted in (where | columns).items():
        if wanted not in ([], None):
            table = select_matching(table, column, wanted)
    return table


def choose(
    table: DataFrame, figure: str, where: dict[str, Any], **columns: Any
) -> tuple[DataFrame, DataFrame, list[Any]]:
    """Select the rows of finished cells that a figure draws, by one column after another: any value of a list (empty: all), a value, or the
    value that most cells have (None). Return them, all rows that are requested in this way whatever the status of their networks, and the
    values that were chosen."""
    rows, values = select_finished(table, figure, where), []
    for column, wanted in columns.items():
        if isinstance(wanted, list):
            rows = among(rows, figure, column, wanted)
        else:
            rows, columns[column] = one_of(rows, figure, column, wanted)
            values.append(columns[column])
    return rows, select_asked(table, where, **columns), values


def among(table: DataFrame, figure: str, column: str, wanted: list[Any]) -> DataFrame:
    """Return the rows with one of these values; all rows if no value is given. An unknown value or an empty result is an error."""
    present = sorted(table[column].unique())
    for value in wanted:
        if value not in present and value not in table.attrs.get(UNFINISHED, {}).get(column, ()):
            raise RankfallError(
                f"figure {figure}: no finished cell has {column} {value}; there is: {', '.join(map(str, present)) or 'nothing'}"
            )
    chosen = table[table[column].isin(wanted)] if wanted else table
    if chosen.empty:
        raise RankfallError(f"figure {figure}: its table has no finished cell, so there is nothing to draw")
    return chosen


def one_of(table: DataFrame, figure: str, column: str, wanted: Any = None) -> tuple[DataFrame, Any]:
    """Return the rows with one value, by default the value that most cells have, and this value."""
    table = among(table, figure, column, [] if wanted is None else [wanted])
    cells = table.groupby(column).key.nunique()
    value = cells[cells == cells.max()].index.min()
    return table[table[column] == value], value


def deepest(table: DataFrame, figure: str, by: list[str]) -> DataFrame:
    """Return the deepest networks of each line, one per seed, because a mean over depths would not be a mean over seeds."""
    return one_a_seed(table[table.depth == table.groupby(by).depth.transform("max")], figure, by)


def one_a_seed(table: DataFrame, figure: str, by: list[str]) -> DataFrame:
    """Return the table, or raise an error if several networks have the same seed and values of `by`. Any field of an architecture may vary
    in the grid, and a mean over different networks would look like one over seeds.
    """
    counts = table.groupby([*by, "seed"]).key.nunique()
    if len(counts) and counts.max() > 1:
        first = counts[counts > 1].index[0]
        mixed = select(table, dict(zip([*by, "seed"], first)))
        differ = {
            column: sorted(mixed[column].map(str).unique())
            for column in mixed.columns.intersection(SPECS)
            if mixed[column].nunique(dropna=False) > 1
        }
        values = "; ".join(f"{column}: {', '.join(texts)}" for column, texts in differ.items())
        raise RankfallError(
            f"figure {figure}: {', '.join(map(str, first[:-1]))} has {int(counts.max())} networks per seed, which differ in {values}; "
            "pick one by the figure's `where`, or draw them separately (figure `sweep`: `lines`, `panels`)"
        )
    return table


def describe_filter(where: dict[str, Any]) -> str:
    """Write a filter in words."""
    words = []
    for column, wanted in where.items():
        values = [parts(value) for value in as_list(wanted)]
        words.append(f"{column} " + ", ".join(" ".join([name, *options.values()]) for name, options in values))
    return "; ".join(words)


def init_first(trainings: Any) -> list[str]:
    """Return the names of trainings, sorted, with `init` first."""
    return sorted({str(name) for name in trainings}, key=lambda name: (name != "init", name))


def chances(table: DataFrame, cells: DataFrame | None = None) -> list[float]:
    """Return the mean chance over seeds for each task with its options, in ascending order. It is not averaged over tasks, which would be
    the chance of no network. `cells`: the table with `chance`, if `table` does not have it."""
    networks = table.drop_duplicates("key")
    if cells is not None:
        networks = networks.assign(chance=networks.key.map(cells.drop_duplicates("key").set_index("key").chance))
    options = networks.task_component if "task_component" in networks else networks.key.map(lambda _: "")
    return sorted(networks.chance.astype(float).groupby(options).mean().dropna())
