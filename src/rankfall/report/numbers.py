"""Numbers that documentation pages quote. `docs/numbers.yaml` defines how each is computed from a table.

A number is a statistic over rows of one table,

    orders_cubic: {table: orders, where: "quantity == 'res' and order > 2.5", value: rows}

or arithmetic of other numbers (`value: a / b`). `each` expands an entry to several: its variables take all their values, which are appended
to the number's name (after `_`) and replace `$name` in `where` and `value`. A mean with its deviation is
`by: seed, of: "mean, std", shown: "{:.2f} +- {:.2f}"`.

`spread: seed` also computes the number of each single seed; `shown` may write their deviation after the number, `"{:.0%} ± {:.0%}"`. Such a
number may depend on the processor: a run on another kind of processor than the page's has to agree within the spread (`values.agrees`), a
run on the same kind exactly.

`report/page_tables.py` has whole tables, `report/values.py` computes the numbers, and `report/pages.py` writes them into pages.
"""

import ast
import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rankfall.errors import RankfallError
from rankfall.report.page_tables import PageTable, page_table
from rankfall.report.schema import schema, table_names

STATISTICS = ("rows", "nunique", "mean", "median", "min", "max", "sum", "std", "only")


@dataclass(frozen=True)
class Run:
    """A run that numbers come from: its command, its folder of tables, and when its numbers were last written into pages."""

    command: str
    tables: str
    commit: str = ""
    date: str = ""
    processor: str = ""  # kinds of processors that computed the pages' numbers (`report/processors.py`); "": unknown


@dataclass(frozen=True)
class Number:
    """A number: `value` over the rows `where` of `table`. With `by`, the statistic `of` (by default the mean) over the values of groups."""

    value: str  # a statistic and its column, "mean accuracy"; "rows"; several, "min lr, max lr"; or arithmetic of other numbers
    table: str = ""
    where: str = ""
    by: str = ""
    of: str = (
        "mean"  # statistic over groups; several, "mean, std"; "all" writes the value of each group, separated by " / "
    )
    shown: str = "{}"  # format; "power": a logarithm to base 10 is written as the number itself or as a power of ten
    digits: int | None = None  # significant digits to keep
    spread: str = ""  # the column over whose values the number varies: `seed`
    run: str = "default"

    def list_statistics(self) -> list[tuple[str, str]]:
        """Return (statistic, column) for each statistic of rows."""
        return [(one.split()[0], " ".join(one.split()[1:])) for one in self.value.split(",")]

    def of_groups(self) -> list[str]:
        return [one.strip() for one in self.of.split(",")]


@dataclass(frozen=True)
class Quoted:
    """A picture of a page, which is a figure of a run."""

    figure: str
    run: str = "default"


@dataclass(frozen=True)
class Numbers:
    runs: dict[str, Run]
    numbers: dict[str, Number]
    pictures: dict[str, Quoted]  # file name in docs/images -> figure
    page_tables: dict[str, PageTable]  # tables of pages; their cells are among the numbers


def read(path: Path) -> Numbers:
    """Read the file of numbers and check its keys, runs, tables, columns, statistics and names of other numbers."""
    import yaml

    from rankfall.yaml_text import load

    try:
        given = load(path.read_text())
    except FileNotFoundError:
        raise RankfallError(f"{path} is missing: `rankfall docs` is for a checkout of Rankfall") from None
    except yaml.YAMLError as error:
        raise RankfallError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    runs = {name: _build(Run, values, f"{path}: run {name}") for name, values in given["runs"].items()}
    each = [one for name, values in given["numbers"].items() for one in _each(name, values)]
    page_tables = {}
    for name, values in given.get("tables", {}).items():
        page_tables[name], cells = page_table(name, values, f"{path}: table {name}")
        each += cells.items()
    numbers = {name: _build(Number, values, f"{path}: {name}") for name, values in each}
    for name, number in numbers.items():
        _check(f"{path}: {name}", number, runs, numbers)
    pictures = {name: _build(Quoted, values, f"{path}: {name}") for name, values in given.get("pictures", {}).items()}
    for name, picture in pictures.items():
        _check_known(f"{path}: {name}", "run", picture.run, runs)
    return Numbers(runs, numbers, pictures, page_tables)


def write_processor(path: Path, run: str, kinds: str) -> None:
    """Record in the file the kinds of processors that computed a run whose numbers have been written into pages."""
    from rankfall.disk import atomic

    lines = path.read_text().splitlines(keepends=True)
    for place, line in enumerate(lines):
        if line.startswith(f"  {run}: {{") and "command:" in line:
            bare = re.sub(r', processor: "[^"]*"', "", line.rstrip())
            lines[place] = f'{bare.removesuffix("}")}, processor: "{kinds}"}}\n'
    with atomic(path) as handle:
        handle.write("".join(lines).encode())


def _each(name: str, values: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (name, keys) of an entry, or of each combination of the values in `each`, which is a list of values or a mapping of short names
    to texts."""
    from itertools import product
    from string import Template

    values = dict(values)
    each = {
        key: {str(short): text for short, text in (one.items() if isinstance(one, dict) else zip(one, one))}
        for key, one in values.pop("each", {}).items()
    }
    for chosen in product(*(one.items() for one in each.values())):
        texts = dict(zip(each, (str(text) for _, text in chosen)))
        made = {key: Template(str(values[key])).safe_substitute(texts) for key in ("where", "value") if key in values}
        yield "_".join([name, *(short for short, _ in chosen)]), values | made


def _build(kind: type[Any], values: Mapping[str, Any], about: str) -> Any:
    allowed = [field.name for field in fields(kind)]
    for key in values:
        _check_known(about, "key", key, allowed)
    try:
        return kind(**values)
    except TypeError as error:
        raise RankfallError(f"{about}: {str(error).partition(') ')[2]}") from None


def _check_known(about: str, what: str, name: str, allowed: Any) -> None:
    if name not in allowed:
        near = difflib.get_close_matches(str(name), list(map(str, allowed)), 1)
        raise RankfallError(f"{about}: there is no {what} {name!r}" + (f"; the nearest is {near[0]!r}" if near else ""))


def _check(about: str, number: Number, runs: Mapping[str, Run], numbers: Mapping[str, Number]) -> None:
    _check_known(about, "run", number.run, runs)
    if not number.table:
        for other in names(about, number.value):
            _check_known(about, "number", other, numbers)
            if number.spread and not numbers[other].table:
                raise RankfallError(f"{about}: `spread` needs numbers of tables, but {other} is arithmetic")
            if numbers[other].table and ("," in numbers[other].value or numbers[other].of_groups() == ["all"]):
                raise RankfallError(f"{about}: {other} has several numbers, but arithmetic needs single ones")
        return
    _check_known(about, "table", number.table, table_names())
    columns = [column.name for column in schema(number.table).columns]
    asked = number.list_statistics()
    for statistic in [*(one for one, _ in asked), *(one for one in number.of_groups() if number.of != "all")]:
        _check_known(about, "statistic", statistic, STATISTICS)
    if number.by and len(asked) > 1:
        raise RankfallError(f"{about}: with `by`, `value` has one statistic; `of` may have several")
    if number.spread and (len(asked) > 1 or "," in number.of or number.of == "all"):
        raise RankfallError(f"{about}: `spread` needs a single number")
    used = [*number.by.split(), *number.spread.split(), *(column for statistic, column in asked if statistic != "rows")]
    for name in [*used, *(names(about, number.where) if number.where else [])]:
        _check_known(about, f"column of {number.table}", name, columns)


def names(about: str, expression: str) -> list[str]:
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError:
        raise RankfallError(f"{about}: {expression!r} is not an expression") from None
    return [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
