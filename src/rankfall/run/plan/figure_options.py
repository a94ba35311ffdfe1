"""Checks that a figure can be drawn from what a configuration measures: networks, columns and models in its options will exist.

A figure would report the same errors, but only after hours. The meaning of an option follows from its name. In figures of any author
`where` filters rows by any column, and `task`, `architectures` and the others of ENTRIES name entries of the configuration. In figures of
this package `panels`, `depths` and so on name values of cells, `numbers` and the others of COLUMNS name columns, and an option with the
name of an option of the measure, in singular or plural, names values of that (`models` of `model`). In other packages `width` may be in
inches. What only a run can know (that every network diverges) is left to the figure.
"""

from collections.abc import Iterable, Mapping
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
Row = tuple[dict[str, Any], Alike]  # the columns of cells, which but for seed and key are those of the first
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
    columns = [(f"where.{column}", column) for column in where]
    columns += [(option, column) for option in COLUMNS for column in as_list(options.get(option) or [])]
    for option, column in columns:
        if (
            isinstance(column, str) and column not in names and not first.inferred
        ):  # else it has the columns of its rows
            raise problem(
                f"{path}.{option}", f"table {first.name!r} has no column {column!r}", allowed=names, given=column
            )
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
    known = {column.name for column in CELL_COLUMNS if not column.provenance} - set(LATE)
    asked = [(f"where.{column}", column, [as_list(value)]) for column, value in where.items() if column in known]
    for option, column in OF_CELLS.items():
        if options.get(option) not in (None, []):
            asked.append((option, column, [[one] for one in as_list(options[option])]))
    panels = options["panels"] if isinstance(options.get("panels"), Mapping) else {}
    if not asked and not panels:
        return
    rows = [(cell_columns(some.cells[0]), some) for some in cells]
    for option, column, groups in asked:
        rows = _narrow(f"{path}.{option}", column, groups, rows)
    for title, names in panels.items():
        if not isinstance(names, list) or not names:
            raise problem(f"{path}.panels.{title}", f"{show_value(names)} is not a list of architectures")
        _narrow(f"{path}.panels.{title}", "architecture", [[one] for one in names], rows)


def _narrow(path: str, column: str, groups: list[list[Any]], rows: list[Row]) -> list[Row]:
    """Return the cells that have one of the values. Raise for a group of values none of which occurs."""
    found = [some.seeds if column == "seed" else [columns[column]] for columns, some in rows]
    there = {str(one): one for values in found for one in values}
    good = set[str]()
    for group in groups:
        own = {name for name, one in there.items() if any(matches_in_table(one, wanted) for wanted in group)}
        if not own:
            what = f"no cell that it could draw has {column} {' or '.join(map(_write_value, group))}"
            raise problem(path, what, allowed=sorted(there) or ["nothing"], given=group[0])
        good |= own
    if column != "seed":
        return [row for row, (one,) in zip(rows, found) if str(one) in good]
    left = ((columns, some.with_seeds([seed for seed in some.seeds if str(seed) in good])) for columns, some in rows)
    return [(columns, some) for columns, some in left if some.cells]


def _write_value(value: Any) -> str:
    name, options = parts(value)
    return " ".join([name, *(f"{key}={option}" for key, option in options.items())])
