"""Numbers that pages quote, each computed from a table: `docs/numbers.yaml` says how, by name.

A number is a statistic over rows of one table,

    orders_cubic: {table: orders, where: "quantity == 'res' and order > 2.5", value: rows}

or arithmetic of other numbers (`value: a / b`). `each` makes several of one: its names take all their values, in the number's name (behind
`_`) and for `$name` in `where` and `value`. Pages with numbers are `report/pages.py`.
"""

from __future__ import annotations

import ast
import difflib
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankfall.errors import RankfallError
from rankfall.report.schema import schema, table_names

if TYPE_CHECKING:
    import pandas as pd

STATISTICS = ("rows", "nunique", "mean", "median", "min", "max", "sum", "std", "only")
ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


@dataclass(frozen=True)
class Run:
    """Where numbers come from: the command of a run, its folder of tables, and when its numbers were last written into pages."""

    command: str
    tables: str
    commit: str = ""
    date: str = ""


@dataclass(frozen=True)
class Number:
    """`value` of the rows `where` of `table`; with `by`, the statistic `of` of the values of groups: a mean of means, by default."""

    value: str  # a statistic and its column, "mean accuracy"; "rows"; without a table, arithmetic of other numbers
    table: str = ""
    where: str = ""
    by: str = ""
    of: str = "mean"
    shown: str = "{}"  # how it is written
    digits: int | None = None  # significant digits that are kept
    run: str = "default"


@dataclass(frozen=True)
class Quoted:
    """A picture of a page: a figure of a run."""

    figure: str
    run: str = "default"


@dataclass(frozen=True)
class Numbers:
    runs: dict[str, Run]
    numbers: dict[str, Number]
    pictures: dict[str, Quoted]  # by their files' names in docs/images


def read(path: Path) -> Numbers:
    """The file, checked: keys, runs, tables, columns, statistics and names of other numbers."""
    import yaml

    try:
        given = yaml.safe_load(path.read_text())
    except FileNotFoundError:
        raise RankfallError(f"{path} is missing: `rankfall docs` is for a checkout of Rankfall") from None
    except yaml.YAMLError as error:
        raise RankfallError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    runs = {name: _made(Run, values, f"{path}: run {name}") for name, values in given["runs"].items()}
    each = [one for name, values in given["numbers"].items() for one in _each(name, values)]
    numbers = {name: _made(Number, values, f"{path}: {name}") for name, values in each}
    for name, number in numbers.items():
        _check(f"{path}: {name}", number, runs, numbers)
    pictures = {name: _made(Quoted, values, f"{path}: {name}") for name, values in given.get("pictures", {}).items()}
    for name, picture in pictures.items():
        _known(f"{path}: {name}", "run", picture.run, runs)
    return Numbers(runs, numbers, pictures)


def _each(name: str, values: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """One number, or one for each combination of the values that `each` lists: its names, or names with what they stand for."""
    from itertools import product
    from string import Template

    values = dict(values)
    each = {
        key: one if isinstance(one, dict) else {str(v): v for v in one} for key, one in values.pop("each", {}).items()
    }
    for chosen in product(*(one.items() for one in each.values())):
        texts = dict(zip(each, (str(text) for _, text in chosen)))
        made = {key: Template(str(values[key])).safe_substitute(texts) for key in ("where", "value") if key in values}
        yield "_".join([name, *(short for short, _ in chosen)]), values | made


def _made(kind: type[Any], values: Mapping[str, Any], about: str) -> Any:
    allowed = [field.name for field in fields(kind)]
    for key in values:
        _known(about, "key", key, allowed)
    try:
        return kind(**values)
    except TypeError as error:
        raise RankfallError(f"{about}: {str(error).partition(') ')[2]}") from None


def _known(about: str, what: str, name: str, allowed: Any) -> None:
    if name not in allowed:
        near = difflib.get_close_matches(str(name), list(map(str, allowed)), 1)
        raise RankfallError(f"{about}: there is no {what} {name!r}" + (f"; the nearest is {near[0]!r}" if near else ""))


def _check(about: str, number: Number, runs: Mapping[str, Run], numbers: Mapping[str, Number]) -> None:
    _known(about, "run", number.run, runs)
    if not number.table:
        for other in names(about, number.value):
            _known(about, "number", other, numbers)
        return
    _known(about, "table", number.table, table_names())
    columns = [column.name for column in schema(number.table).columns]
    statistic, _, column = number.value.partition(" ")
    _known(about, "statistic", statistic, STATISTICS)
    _known(about, "statistic", number.of, STATISTICS)
    used = [*number.by.split(), *([column] if statistic != "rows" else [])]
    for name in [*used, *(names(about, number.where) if number.where else [])]:
        _known(about, f"column of {number.table}", name, columns)


def names(about: str, expression: str) -> list[str]:
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError:
        raise RankfallError(f"{about}: {expression!r} is not an expression") from None
    return [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]


class Tables:
    """The tables of the runs that are at hand, each read once: name of a run -> its folder of tables."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._folders = dict(folders)
        self._read: dict[tuple[str, str], pd.DataFrame] = {}
        self._first: dict[
            str, tuple[str, bool]
        ] = {}  # run -> a table of it, and whether a plan says what it is made of

    def lacks(self, run: str, table: str) -> str:
        """The file that is not there; nothing if it is."""
        if run not in self._folders:
            return "folder of tables here"
        return "" if (self._folders[run] / f"{table}.parquet").is_file() else f"{table}.parquet"

    def frame(self, run: str, table: str) -> pd.DataFrame:
        from rankfall.report import tables

        if (run, table) not in self._read:
            path = self._folders[run] / f"{table}.parquet"
            planned = "made" in tables.about_of(tables.read(path))
            first, as_first = self._first.setdefault(run, (table, planned))
            if planned != as_first:
                raise RankfallError(f"of {path} and {first}.parquet one was made by a run and one by hand: run again")
            self._read[run, table] = tables.read_frame(path, table)
        return self._read[run, table]

    def picture(self, quoted: Quoted) -> Path | None:
        """The file of a figure beside the run's tables, if it is there."""
        file = self._folders.get(quoted.run, Path()).parent / "figures" / f"{quoted.figure}.png"
        return file if quoted.run in self._folders and file.is_file() else None


def compute(name: str, numbers: Numbers, tables: Tables) -> Any:
    """The value of one number, not yet written."""
    number = numbers.numbers[name]
    if not number.table:
        return _arithmetic(ast.parse(number.value, mode="eval").body, numbers, tables)
    rows = tables.frame(number.run, number.table)
    if number.where:
        rows = rows.query(number.where, engine="python")
    statistic, _, column = number.value.partition(" ")
    if statistic == "rows" and not number.by:
        return len(rows)
    if rows.empty:
        raise RankfallError(f"{name}: no row of {number.table} has {number.where}")
    if not number.by:
        return _statistic(name, statistic, rows[column])
    import pandas as pd

    parts = [part for _, part in rows.groupby(number.by.split(), dropna=False)]
    return _statistic(
        name, number.of, pd.Series([_statistic(name, statistic, part[column or part.columns[0]]) for part in parts])
    )


def _statistic(name: str, statistic: str, values: pd.Series) -> Any:
    if statistic == "only":
        found = values.unique()
        if len(found) != 1:
            raise RankfallError(f"{name}: its rows have {len(found)} values, and `only` is for one")
        return found[0]
    return len(values) if statistic == "rows" else getattr(values, statistic)()


def _arithmetic(node: ast.AST, numbers: Numbers, tables: Tables) -> Any:
    if isinstance(node, ast.Name):
        return compute(node.id, numbers, tables)
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        return ARITHMETIC[type(node.op)](
            _arithmetic(node.left, numbers, tables), _arithmetic(node.right, numbers, tables)
        )
    raise RankfallError(f"{ast.unparse(node)!r}: numbers are combined by + - * / alone")


def written(name: str, numbers: Numbers, tables: Tables) -> str:
    """The number as a page has it."""
    number, value = numbers.numbers[name], compute(name, numbers, tables)
    if number.digits is not None and value:
        import math

        value = round(value, number.digits - 1 - math.floor(math.log10(abs(value))))
    return number.shown.format(value)


def lacks(name: str, numbers: Numbers, tables: Tables) -> tuple[str, str]:
    """The run of a number, and the file that it needs and that is not there; nothing if all are."""
    number = numbers.numbers[name]
    if number.table:
        return number.run, tables.lacks(number.run, number.table)
    return next(
        (found for other in names(name, number.value) if (found := lacks(other, numbers, tables))[1]), (number.run, "")
    )
