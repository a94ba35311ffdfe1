"""Compute the numbers and tables that documentation pages quote. `docs/numbers.yaml` defines each by a table of a run.

A number is a statistic over rows of one table,

    orders_cubic: {table: orders, where: "quantity == 'res' and order > 2.5", value: rows}

or arithmetic of other numbers (`value: a / b`). `each` expands an entry to several: its variables take all their values, which are appended
to the number's name (after `_`) and replace `$name` in `where` and `value`. `by: seed, of: "mean, std"` gives statistics over groups.
`spread: seed` also computes the number of each single seed, and `shown` writes their deviation after it, `"{:.0%} ± {:.0%}"`.

In a table, the row and the column of a cell define its number together:

    circle:
      head: network                                     # heading of the rows' names
      cells: {table: circle, value: sum meets}          # keys of a number, for all cells
      rows: {SAN: "architecture == 'SAN'", depth: [2, 6]}                  # a name and `where`, or a column and its values
      columns: {at 8: length == 8, loss: {value: mean loss, where: ...}}   # or a name and keys of a number
      missing: "-"                                      # text of a cell without rows, which is an error by default
"""

import math
import re
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from itertools import product
from pathlib import Path
from string import Template
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from rankfall.annotations import DataFrame, Series
from rankfall.errors import RankfallError

FIRST = re.compile(r"(-?[\d,]+(?:\.(\d+))?)(%?)")  # the first number of a text
DEVIATIONS = 3  # a difference of up to so many standard deviations is explained by chance
STRICT = ConfigDict(extra="forbid")


class NoRowsError(RankfallError):
    """A number whose statistic has no rows."""


@dataclass(frozen=True, config=STRICT)
class Run:
    """A run that numbers come from: its command, its folder of tables, and when its numbers were last written into pages."""

    command: str
    tables: str
    commit: str = ""
    date: str = ""


@dataclass(frozen=True, config=STRICT)
class Number:
    """A number: `value` over the rows `where` of `table`. With `by`, the statistic `of` over the values of groups."""

    value: str  # a statistic and its column, "mean accuracy"; "rows"; several, "min lr, max lr"; or arithmetic of other numbers
    table: str = ""
    where: str = ""
    by: str = ""
    of: str = "mean"  # several, "mean, std"; "all" writes the value of each group, separated by " / "
    shown: str = "{}"  # format; "power": a logarithm to base 10 is written as the number itself or as a power of ten
    digits: int | None = None  # significant digits to keep
    spread: str = ""  # the column over whose values the number varies: `seed`
    run: str = "default"


@dataclass(frozen=True, config=STRICT)
class PageTable:
    """A table of a page, as the file of numbers has it."""

    head: str
    cells: dict[str, Any]
    rows: dict[Any, Any]
    columns: dict[Any, Any]
    missing: str | None = None


@dataclass(frozen=True, config=STRICT)
class QuotedFigure:
    """A picture of a page, which is a figure of a run."""

    figure: str
    run: str = "default"


@dataclass(frozen=True, config=STRICT)
class Definitions:
    """The content of the file of numbers."""

    runs: dict[str, Run]
    numbers: dict[str, Number]
    pictures: dict[str, QuotedFigure] = field(default_factory=dict)
    tables: dict[str, PageTable] = field(default_factory=dict)


def read_definitions(path: Path) -> Definitions:
    """Read the file of numbers."""
    import yaml

    from rankfall.yaml_text import load

    try:
        fields = load(path.read_text())
        numbers = dict(entry for name, values in fields["numbers"].items() for entry in expand(name, values))
        return TypeAdapter(Definitions).validate_python(fields | {"numbers": numbers})
    except FileNotFoundError:
        raise RankfallError(f"{path} is missing: `rankfall docs` is for a checkout of Rankfall") from None
    except (yaml.YAMLError, ValidationError) as error:
        raise RankfallError(f"{path}: {' '.join(str(error).split())}") from None


def expand(name: str, values: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (name, keys) of an entry, or of each combination of the values in `each`: a list, or a mapping of short names to texts."""
    fields, variables = dict(values), values.get("each", {})
    fields.pop("each", None)
    for chosen in product(
        *(choices.items() if isinstance(choices, dict) else zip(choices, choices) for choices in variables.values())
    ):
        texts = {variable: str(text) for variable, (_, text) in zip(variables, chosen)}
        replaced = {
            key: Template(str(fields[key])).safe_substitute(texts) for key in ("where", "value") if key in fields
        }
        yield "_".join([name, *(str(short) for short, _ in chosen)]), fields | replaced


class Quotations:
    """Numbers and tables for pages, from the tables of runs that are available. `folders`: name of a run -> its folder of tables."""

    def __init__(self, defined: Definitions, folders: Mapping[str, Path]) -> None:
        self.defined, self.folders = defined, folders
        self._frames: dict[Path, DataFrame] = {}

    def values(self, number: Number, only: tuple[str, Any] | None = None) -> list[Any]:
        """Return the values of a number before formatting. `only`: a column and the value that rows must have in it."""
        if not number.table:
            operand_values = {name: self.values(self.defined.numbers[name], only)[0] for name in operands(number)}
            return [eval(number.value, {"__builtins__": {}}, operand_values)]
        rows = self._select(number, only)
        requests = [(request.split()[0], " ".join(request.split()[1:])) for request in number.value.split(",")]
        if rows.empty and (number.by or requests != [("rows", "")]):
            raise NoRowsError(f"no row of {number.table} matches {number.where}")
        if not number.by:
            return [compute_statistic(statistic, rows, column) for statistic, column in requests]
        from pandas import DataFrame, Series

        parts = rows.groupby(number.by.split(), dropna=False)
        groups = Series([compute_statistic(*requests[0][:1], part, requests[0][1]) for _, part in parts])
        if number.of == "all":
            return list(groups)
        return [
            compute_statistic(statistic.strip(), DataFrame({"group": groups}), "group")
            for statistic in number.of.split(",")
        ]

    def spread(self, number: Number) -> tuple[float, int]:
        """Return the deviation of a number over the values of its `spread` column, and their count."""
        parts = [number] if number.table else [self.defined.numbers[name] for name in operands(number)]
        shares = [set(self._select(part)[number.spread].dropna().unique()) for part in parts]
        values = [self.values(number, (number.spread, value))[0] for value in sorted(set.intersection(*shares))]
        if len(values) < 2:
            raise RankfallError(f"its spread needs two values of {number.spread}, but its rows have {len(values)}")
        return statistics.stdev(map(float, values)), len(values)

    def write(self, number: Number) -> str:
        """Return a number in the format of pages."""
        values = self.values(number)
        if number.digits is not None:  # significant digits
            values = [v and round(v, number.digits - 1 - math.floor(math.log10(abs(v)))) for v in values]
        show: Callable[..., str] = write_power if number.shown == "power" else number.shown.format
        if number.spread:
            return show(values[0], self.spread(number)[0])
        return " / ".join(map(show, values)) if number.of == "all" else show(*values)

    def write_table(self, name: str) -> str:
        """Return a table as Markdown."""
        table = self.defined.tables[name]
        rows, columns = dict(name_lines(table.rows)), dict(name_lines(table.columns))

        def cell(row: str, column: str) -> str:
            try:
                return self.write(Number(**merge_keys(table.cells, rows[row], columns[column])))
            except NoRowsError as error:
                if table.missing is None:
                    raise RankfallError(f"{row}, {column}: {error}; `missing` sets the text of such cells") from None
                return table.missing

        width = table.head.count(" | ") + 1 + len(columns)
        lines = [[table.head, *columns], ["---"] * width]
        lines += [[row, *(cell(row, column) for column in columns)] for row in rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"

    def agrees(self, number: Number, written: str, current: str) -> bool:
        """Return whether a page's number is the one of the tables, or differs by what its spread explains. The difference of two means
        over n seeds has a deviation of sqrt(2 / n) times the spread; half a unit of the page's last digit is added."""
        first = FIRST.search(written)
        if written == current or not number.spread or first is None:
            return written == current
        deviation, count = self.spread(number)
        unit = 0.01 if first[3] else 1.0
        apart = abs(float(first[1].replace(",", "")) * unit - float(self.values(number)[0]))
        digit = unit * 10.0 ** -len(first[2] or "")
        return bool(apart <= DEVIATIONS * deviation * (2 / count) ** 0.5 + digit / 2)

    def picture(self, picture: QuotedFigure) -> Path:
        """Return the file of a figure beside the run's tables, which may not exist."""
        return self.folders.get(picture.run, Path()).parent / "figures" / f"{picture.figure}.png"

    def _select(self, number: Number, only: tuple[str, Any] | None = None) -> DataFrame:
        """Return the rows of a number, from its table. `only`: a column and the value that rows must have in it."""
        from rankfall.report import tables

        if number.run not in self.folders:
            raise RankfallError(f"the run {number.run} has no folder of tables here")
        path = self.folders[number.run] / f"{number.table}.parquet"
        if path not in self._frames:
            self._frames[path] = tables.read_frame(path, number.table)
        rows = self._frames[path]
        rows = rows.query(number.where, engine="python") if number.where else rows
        return rows if only is None else rows[rows[only[0]] == only[1]]


def operands(number: Number) -> tuple[str, ...]:
    """Return the names of the numbers in an arithmetic expression."""
    return compile(number.value, "docs/numbers.yaml", "eval").co_names


def compute_statistic(statistic: str, rows: DataFrame, column: str) -> Any:
    """Return a statistic of a column: the name of a method of pandas, `rows`, or `only`, the single value that all rows have."""
    if statistic == "rows":
        return len(rows)
    values: Series = rows[column]
    if statistic == "only" and values.nunique(dropna=False) != 1:
        raise RankfallError(f"`only` needs a single value, but {column} has {values.nunique(dropna=False)}")
    result = values.iloc[0] if statistic == "only" else getattr(values, statistic)()
    if statistic != "only" and result != result:
        raise RankfallError(f"the {statistic} of {len(values)} rows is missing")
    return result


def name_lines(lines: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the names of rows, or of columns, and the keys that each adds."""
    for name, keys in lines.items():
        if isinstance(keys, list):
            yield from ((str(value), {"where": f"{name} == {value!r}"}) for value in keys)
        else:
            yield str(name), keys if isinstance(keys, Mapping) else {"where": str(keys)}


def merge_keys(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the keys of a number, with all its conditions."""
    wheres = [f"({part['where']})" for part in parts if part.get("where")]
    return {key: value for part in parts for key, value in part.items()} | {"where": " and ".join(wheres)}


def write_power(log10: float) -> str:
    """Write 10^log10 with two digits, or as a power if it is small."""
    if log10 > -3:
        return f"{10**log10:.2g}"
    return f"10^{log10:.1f}" if log10 > -10 else f"10^{log10:.0f}" if log10 > -1e6 else f"10^({log10:.1e})"
