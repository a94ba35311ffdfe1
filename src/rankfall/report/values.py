"""Computation of the numbers of documentation pages from the available tables of runs."""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rankfall.annotations import DataFrame, Series
from rankfall.errors import RankfallError
from rankfall.report.numbers import Numbers, Quoted, names
from rankfall.report.processors import find_kinds_of_run

ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


class Tables:
    """The available tables of runs, each of which is read once. `folders`: name of a run -> its folder of tables."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._folders = dict(folders)
        self._read: dict[tuple[str, str], DataFrame] = {}
        self._kinds: dict[str, str] = {}

    def lacks(self, run: str, table: str) -> str:
        """Return what is missing for a table of a run; empty if it exists."""
        if run not in self._folders:
            return "folder of tables here"
        return "" if (self._folders[run] / f"{table}.parquet").is_file() else f"{table}.parquet"

    def frame(self, run: str, table: str) -> DataFrame:
        from rankfall.report import tables

        if (run, table) not in self._read:
            self._read[run, table] = tables.read_frame(self._folders[run] / f"{table}.parquet", table)
        return self._read[run, table]

    @property
    def runs(self) -> list[str]:
        """The runs whose tables are available."""
        return sorted(self._folders)

    def kinds(self, run: str) -> str:
        """Return the kinds of processors that computed a run's tables; empty if they are not recorded."""
        if run not in self._kinds:
            self._kinds[run] = "; ".join(find_kinds_of_run(self._folders[run]))
        return self._kinds[run]

    def picture(self, quoted: Quoted) -> Path | None:
        """Return the file of a figure beside the run's tables, or None."""
        file = self._folders.get(quoted.run, Path()).parent / "figures" / f"{quoted.figure}.png"
        return file if quoted.run in self._folders and file.is_file() else None


DEVIATIONS = 3  # a difference of up to so many standard deviations is explained by chance
FIRST = re.compile(r"(-?[\d,]+(?:\.(\d+))?)(%?)")  # the first number of a text


class NoRowsError(RankfallError):
    """A number whose statistic has no rows."""


def compute(name: str, numbers: Numbers, tables: Tables) -> Any:
    """Return the value of a number before formatting; the first value if it has several."""
    return _values(name, numbers, tables)[0]


def compute_spread(name: str, numbers: Numbers, tables: Tables) -> tuple[float, int]:
    """Return the deviation of a number over the values of its `spread` column, each from the rows with this value, and their count."""
    import statistics

    column = numbers.numbers[name].spread
    shares = [_select(one, numbers, tables)[column].dropna().unique() for one in _of_tables(name, numbers)]
    each = sorted(set.intersection(*map(set, shares)))
    if len(each) < 2:
        raise RankfallError(f"{name}: its spread needs two values of {column}, but its rows have {len(each)}")
    found = [_values(name, numbers, tables, (column, one))[0] for one in each]
    return statistics.stdev(map(float, found)), len(each)


def agrees(name: str, said: str, numbers: Numbers, tables: Tables) -> bool:
    """Return whether a page's number agrees with tables of another kind of processor. The difference of two means over n seeds has a
    deviation of sqrt(2 / n) times the spread; it may be three of these plus half a unit of the page's last digit."""
    first = FIRST.search(said)
    if not numbers.numbers[name].spread or first is None:
        return False
    deviation, count = compute_spread(name, numbers, tables)
    unit = 0.01 if first[3] else 1.0
    digit = unit * 10.0 ** -len(first[2] or "")
    apart = abs(float(first[1].replace(",", "")) * unit - float(compute(name, numbers, tables)))
    return bool(apart <= DEVIATIONS * deviation * (2 / count) ** 0.5 + digit / 2)


def _of_tables(name: str, numbers: Numbers) -> list[str]:
    """Return the names of the numbers of tables that a number depends on: itself, or the operands of its arithmetic."""
    number = numbers.numbers[name]
    return [name] if number.table else names(name, number.value)


Only = tuple[str, Any]  # a column and the value that rows must have in it


def _select(name: str, numbers: Numbers, tables: Tables, only: Only | None = None) -> DataFrame:
    number = numbers.numbers[name]
    rows = tables.frame(number.run, number.table)
    if number.where:
        rows = rows.query(number.where, engine="python")
    return rows if only is None else rows[rows[only[0]] == only[1]]


def _values(name: str, numbers: Numbers, tables: Tables, only: Only | None = None) -> list[Any]:
    """Return the values of a number before formatting."""
    number = numbers.numbers[name]
    if not number.table:
        return [_arithmetic(ast.parse(number.value, mode="eval").body, numbers, tables, only)]
    rows = _select(name, numbers, tables, only)
    asked = number.list_statistics()
    if asked == [("rows", "")] and not number.by:
        return [len(rows)]
    if rows.empty:
        raise NoRowsError(f"{name}: no row of {number.table} matches {number.where}")
    if not number.by:
        return [_statistic(name, statistic, rows[column or rows.columns[0]]) for statistic, column in asked]
    import pandas as pd

    (statistic, column), parts = asked[0], rows.groupby(number.by.split(), dropna=False)
    groups = pd.Series([_statistic(name, statistic, part[column or part.columns[0]]) for _, part in parts])
    return list(groups) if number.of == "all" else [_statistic(name, of, groups) for of in number.of_groups()]


def _statistic(name: str, statistic: str, values: Series) -> Any:
    import pandas as pd

    if statistic == "only":
        found = values.unique()
        if len(found) != 1:
            raise RankfallError(f"{name}: `only` needs a single value, but its rows have {len(found)}")
        return found[0]
    found = len(values) if statistic == "rows" else getattr(values, statistic)()
    if pd.isna(found):
        raise RankfallError(f"{name}: the {statistic} of {len(values)} rows is missing")
    return found


def _arithmetic(node: ast.AST, numbers: Numbers, tables: Tables, only: Only | None) -> Any:
    if isinstance(node, ast.Name):
        return _values(node.id, numbers, tables, only)[0]
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        return ARITHMETIC[type(node.op)](
            _arithmetic(node.left, numbers, tables, only), _arithmetic(node.right, numbers, tables, only)
        )
    raise RankfallError(f"{ast.unparse(node)!r}: only + - * / can combine numbers")


def write_number(name: str, numbers: Numbers, tables: Tables) -> str:
    """Return a number in the format of pages."""
    number = numbers.numbers[name]
    found = [_round(value, number.digits) for value in _values(name, numbers, tables)]
    shown: Callable[..., str] = _power if number.shown == "power" else number.shown.format
    if number.spread:
        return shown(found[0], compute_spread(name, numbers, tables)[0])
    return " / ".join(map(shown, found)) if number.of == "all" else shown(*found)


def write_table(name: str, numbers: Numbers, tables: Tables) -> str:
    """Return a table in the format of pages."""

    def cell(number: str) -> str | None:
        try:
            return write_number(number, numbers, tables)
        except NoRowsError:
            return None

    return numbers.page_tables[name].write_markdown(cell)


def _power(log10: float) -> str:
    """Write 10^log10 with two digits, or as a power if it is small."""
    if log10 > -3:
        return f"{10**log10:.2g}"
    return f"10^{log10:.1f}" if log10 > -10 else f"10^{log10:.0f}" if log10 > -1e6 else f"10^({log10:.1e})"


def _round(value: Any, digits: int | None) -> Any:
    import math

    return value if digits is None or not value else round(value, digits - 1 - math.floor(math.log10(abs(value))))


def lacks(name: str, numbers: Numbers, tables: Tables) -> tuple[str, str]:
    """Return the run of a number and the missing file that it needs; the latter is empty if nothing is missing."""
    number = numbers.numbers[name]
    if number.table:
        return number.run, tables.lacks(number.run, number.table)
    return next(
        (found for other in names(name, number.value) if (found := lacks(other, numbers, tables))[1]), (number.run, "")
    )
