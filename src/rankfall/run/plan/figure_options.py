"""Checks that a figure can be drawn from what a configuration measures: networks, columns and models in its options will exist.

A figure would report the same errors, but only after hours. The meaning of an option follows from its name. In figures of any author
`where` filters rows by any column, and `task`, `architectures` and the others of ENTRIES name entries of the configuration. In figures of
this package `panels`, `depths` and so on name values of cells, `numbers` and the others of COLUMNS name columns, and an option with the
name of an option of the measure, in singular or plural, names values of that (`models` of `model`). In other packages `width` may be in
inches. What only a run can know (that every network diverges) is left to the figure.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rankfall.filters import as_list, matches_in_table, parts
from rankfall.report.rows import cell_columns
from rankfall.report.schema import CELL_COLUMNS, schema
from rankfall.run.config.options import description
from rankfall.run.config.problems import problem, show_value
from rankfall.run.plan.cell import Alike

if TYPE_CHECKING:
    from rankfall.run.plan.build import FigurePlan, MeasurePlan

# Options that name values of a column of cells. In this order each narrows the choice of the next.
OF_CELLS = {
    "task": "task",
    "tasks": "task",
    "training": "training",
    "trainings": "training",
    "depths": "depth",
    "seed": "seed",
    "width": "width",
    "architecture": "architecture",
    "architectures": "architecture",
}
ENTRIES = ("task", "tasks", "training", "trainings", "architecture", "architectures")
COLUMNS = ("numbers", "lines", "panels", "x")
LATE = ("key", "status", "reason")  # columns of cells that are known only after a run


def check_figure_options(
    figure: "FigurePlan",
    measures: Iterable["MeasurePlan"],
    cells: list[Alike],
    selected: Mapping[str, frozenset[str]],
) -> None:
    """Raise if an option of the figure names something that its tables will not have. `selected` maps measures to the keys of their
    cells."""
    path, options = f"figures.{figure.name}", figure.options
    found = description("figure", figure.component.name, path)
    shipped = found is not None and found.location.shipped
    if not shipped:
        options = {name: value for name, value in options.items() if name in ("where", *ENTRIES)}
    feeding = [measure for measure in measures if measure.table in figure.tables]
    for option, value in options.items():
        _check_measured(f"{path}.{option}", option, as_list(value), feeding)
    tables = [schema(name) for name in figure.tables]
    first, where = tables[0], options.get("where") or {}
    names = sorted(column.name for column in first.columns)
    for column in where:
        if column not in names and not first.inferred:  # otherwise the table has the columns of its rows
            what = f"table {first.name!r} has no such column"
            raise problem(f"{path}.where.{column}", what, allowed=names, given=column)
    for option in COLUMNS:
        for column in as_list(options.get(option) or []):
            if isinstance(column, str) and column not in names:
                what = f"{column!r} is not a column of table {first.name!r}"
                raise problem(f"{path}.{option}", what, allowed=names, given=column)
    of_cells = next((table for table in tables if table.cells), None)
    if of_cells is not None or shipped:
        filling = {selected[measure.name] for measure in feeding if of_cells and measure.table == of_cells.name}
        _check_cells(path, options, where if of_cells is first else {}, _cells_with_rows(filling, cells))


def _cells_with_rows(filling: set[frozenset[str]], cells: list[Alike]) -> list[Alike]:
    """Return the cells that have rows in a table. `filling`: the keys of cells of each measure that fills it; none do for `cells`."""
    if not filling:
        return cells
    there = ([cell for cell in some.cells if any(cell.key in keys for keys in filling)] for some in cells)
    return [Alike(left) for left in there if left]


def _check_measured(path: str, option: str, wanted: list[Any], feeding: list["MeasurePlan"]) -> None:
    """Raise if no measure has one of the values. If its option is null or empty, the measure decides when it runs."""
    names = {option, f"{option}s", option.removesuffix("s")}
    given = [value for measure in feeding for name, value in measure.options.items() if name in names]
    if not given or any(one in (None, []) for one in given):
        return
    known = [parts(value)[0] if isinstance(value, Mapping) else value for one in given for value in as_list(one)]
    for value in wanted:
        if value not in known and not isinstance(value, bool | None):
            raise problem(
                path, f"{show_value(value)} is not measured", allowed=map(str, dict.fromkeys(known)), given=value
            )


def _check_cells(path: str, options: Mapping[str, Any], where: Mapping[str, Any], cells: list[Alike]) -> None:
    """Raise if no cell remains after a filter or an option, or if a named value does not occur."""
    made: dict[int, dict[str, Any]] = {}

    def value(some: Alike, column: str) -> Any:
        """Return the value of a column that does not depend on the seed."""
        ident = id(some.cells[0])
        if ident not in made:
            made[ident] = cell_columns(some.cells[0])
        return made[ident][column]

    known = {column.name for column in CELL_COLUMNS if not column.provenance} - set(LATE)
    for column in where.keys() & known:
        cells = _narrow(f"{path}.where.{column}", column, [as_list(where[column])], cells, value)
    for option, column in OF_CELLS.items():
        if options.get(option) not in (None, []):
            cells = _narrow(f"{path}.{option}", column, [[one] for one in as_list(options[option])], cells, value)
    panels = options.get("panels")
    for title, names in panels.items() if isinstance(panels, Mapping) else ():
        if not isinstance(names, list) or not names:
            raise problem(f"{path}.panels.{title}", f"{show_value(names)} is not a list of architectures")
        _narrow(f"{path}.panels.{title}", "architecture", [[one] for one in names], cells, value)


def _narrow(
    path: str, column: str, groups: list[list[Any]], cells: list[Alike], value: Callable[[Alike, str], Any]
) -> list[Alike]:
    """Return the cells that have one of the values. Raise for a group of values none of which occurs."""
    found = [some.seeds if column == "seed" else [value(some, column)] for some in cells]
    there = {str(one): one for values in found for one in values}
    for group in groups:
        if not any(matches_in_table(one, wanted) for one in there.values() for wanted in group):
            what = f"no cell that it could draw has {column} {' or '.join(map(_write_value, group))}"
            raise problem(path, what, allowed=sorted(there) or ["nothing"], given=group[0])
    good = {
        name for name, one in there.items() if any(matches_in_table(one, item) for group in groups for item in group)
    }
    if column != "seed":
        return [some for some, (one,) in zip(cells, found) if str(one) in good]
    left = (some.with_seeds([seed for seed in seeds if str(seed) in good]) for some, seeds in zip(cells, found))
    return [some for some in left if some.cells]


def _write_value(value: Any) -> str:
    name, options = parts(value)
    return " ".join([name, *(f"{key}={option}" for key, option in options.items())])
