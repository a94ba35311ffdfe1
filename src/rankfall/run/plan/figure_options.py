"""Check what users declare of figures and quantities before any work starts: a figure would report the same errors, but only after hours.

The networks, columns and models in a figure's options must exist when it is drawn. The meaning of an option follows from its name. In
figures of any author, `where` filters rows by any column, and `task`, `architectures` and the others of ENTRIES name entries of the
configuration. In figures of this package, `panels`, `depths` and so on name values of cells, and `numbers` and the others of COLUMNS name
columns. If a measure has an option of the same name, in singular or plural, the figure's option names its values (`models` of `model`). In
other packages, such names may mean something else: `width` may be in inches. The figure itself reports what only a run can show, such as
that every network diverges.
"""

from collections.abc import Container, Iterable, Mapping
from typing import Any

from rankfall.errors import RankfallError, describe_error
from rankfall.filters import as_list, matches_in_table, parts
from rankfall.report.headlines import Headline, headlines
from rankfall.report.page.chart import Chart, charts
from rankfall.report.page.question import Question
from rankfall.report.published_numbers import published_numbers
from rankfall.report.quantities import STUDIES, declarations_of
from rankfall.report.rows import cell_columns
from rankfall.report.schema import CELL_COLUMNS, schema
from rankfall.run.config.options import description
from rankfall.run.config.problems import problem, show_value
from rankfall.run.plan.cell import Alike
from rankfall.run.plan.entries import FigurePlan, MeasurePlan

# Option -> column of cells whose values it names. In this order, each option narrows the choice of the next.
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
Row = tuple[dict[str, Any], Alike]  # cells that differ only in seed and key, after the columns of the first of them
LATE = ("key", "status", "reason")  # columns of cells that only a run can fill


def check_figure_options(
    figure: FigurePlan,
    measures: Iterable["MeasurePlan"],
    cells: list[Alike],
    selected: Mapping[str, frozenset[str]],
) -> None:
    """Raise if an option of the figure names a value or column that its tables will lack. `selected` maps measures to keys of cells."""
    path, options = f"figures.{figure.name}", figure.options
    described = description("figure", figure.component.name, path)
    shipped = described is not None and described.location.shipped
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
        if isinstance(column, str) and column not in names and not first.inferred:
            fault = f"table {first.name!r} has no column {column!r}"
            raise problem(f"{path}.{option}", fault, allowed=names, name=column)
    of_cells = next((table for table in tables if table.cells), None)
    if of_cells is not None or shipped:
        filling = {selected[measure.name] for measure in feeding if of_cells and measure.table == of_cells.name}
        _check_cells(path, options, where if of_cells is first else {}, _cells_with_rows(filling, cells))


def _cells_with_rows(filling: set[frozenset[str]], cells: list[Alike]) -> list[Alike]:
    """Return the cells that have rows in a table. `filling` holds the keys of cells of each measure that fills it; none fills `cells`."""
    if not filling:
        return cells
    measured = ([cell for cell in series.cells if any(cell.key in keys for keys in filling)] for series in cells)
    return [Alike(remaining) for remaining in measured if remaining]


def _check_measured(path: str, option: str, values: list[Any], feeding: list[MeasurePlan]) -> None:
    """Raise if no measure has one of the values. If its option is null or empty, the measure decides when it runs."""
    names = {option, f"{option}s", option.removesuffix("s")}
    options = [value for measure in feeding for name, value in measure.options.items() if name in names]
    if not options or any(value in (None, []) for value in options):
        return
    items = [item for value in options for item in as_list(value)]
    known = [parts(item)[0] if isinstance(item, Mapping) else item for item in items]
    for value in values:
        if value not in known and not isinstance(value, bool | None):
            fault = f"{show_value(value)} is not measured"
            raise problem(path, fault, allowed=map(str, dict.fromkeys(known)), name=value)


def _check_cells(path: str, options: Mapping[str, Any], where: Mapping[str, Any], cells: list[Alike]) -> None:
    """Raise if no cell remains after a filter or an option, or if a named value does not occur."""
    known = {column.name for column in CELL_COLUMNS if not column.provenance} - set(LATE)
    filters = [(f"where.{column}", column, [as_list(value)]) for column, value in where.items() if column in known]
    for option, column in OF_CELLS.items():
        if options.get(option) not in (None, []):
            filters.append((option, column, [[item] for item in as_list(options[option])]))
    panels = options["panels"] if isinstance(options.get("panels"), Mapping) else {}
    if not filters and not panels:
        return
    rows = [(cell_columns(series.cells[0]), series) for series in cells]
    for option, column, groups in filters:
        rows = _narrow(f"{path}.{option}", column, groups, rows)
    for title, names in panels.items():
        if not isinstance(names, list) or not names:
            raise problem(f"{path}.panels.{title}", f"{show_value(names)} is not a list of architectures")
        _narrow(f"{path}.panels.{title}", "architecture", [[item] for item in names], rows)


def _narrow(path: str, column: str, groups: list[list[Any]], rows: list[Row]) -> list[Row]:
    """Return the cells that have one of the values. Raise for a group of values none of which occurs."""
    cell_values = [series.seeds if column == "seed" else [columns[column]] for columns, series in rows]
    present = {str(value): value for values in cell_values for value in values}
    matching = set[str]()
    for group in groups:
        names = {name for name, value in present.items() if any(matches_in_table(value, item) for item in group)}
        if not names:
            fault = f"no cell that it could draw has {column} {' or '.join(map(_write_value, group))}"
            raise problem(path, fault, allowed=sorted(present) or ["nothing"], name=group[0])
        matching |= names
    return [row for row, values in zip(rows, cell_values) if not matching.isdisjoint(map(str, values))]


def _write_value(value: Any) -> str:
    """Return a value of a filter as text, with the options of a component."""
    name, options = parts(value)
    return " ".join([name, *(f"{key}={option}" for key, option in options.items())])


BESIDE = ("setting", "apart", "chance_of_cell")  # columns that the page adds to tables of cells


def check_declarations(modules: Iterable[str], filled: Container[str]) -> None:
    """Raise if a declaration names a study, a column or a headline that does not exist. `filled` are the tables of the run."""
    modules = list(modules)
    try:
        tables = {module: schema(module) for module in modules if module in filled}
        numbers, page_charts, questions = headlines(), charts(), declarations_of("sentence")
        list(published_numbers())
    except (ImportError, AttributeError, NameError, SyntaxError, TypeError, ValueError) as error:
        raise RankfallError(f"{' or '.join(modules)}: a declaration cannot be read: {describe_error(error)}") from error
    for module, table in tables.items():
        if table.name != module:
            raise problem(
                module, f"calls its table {table.name!r}", hint=f"such a table is named by its module, {module!r}"
            )
    declared: list[Headline | Chart] = [*numbers, *page_charts]
    for item in (item for item in declared if item.table in tables):
        where = f"{item.table}: {'chart' if isinstance(item, Chart) else 'headline'} {item.name!r}"
        if item.study not in STUDIES:
            raise problem(where, f"study {item.study!r} does not exist", allowed=STUDIES, name=item.study)
        known = [column.name for column in tables[item.table].columns]
        for column in columns_of(item) if isinstance(item, Chart) else item.columns:
            if (
                column not in known and not tables[item.table].inferred
            ):  # the columns of an inferred table follow from its rows
                raise problem(where, f"table {item.table} has no column {column!r}", near=known, name=column)
    known = [headline.name for headline in numbers]
    for question in questions:
        for number in question.numbers if question.table in tables and isinstance(question, Question) else ():
            if number not in known:
                where = f"{question.table}: sentence {question.name!r}"
                raise problem(where, f"there is no headline {number!r}", near=known, name=number)


def columns_of(chart: Chart) -> list[str]:
    """Return the columns of its table that a chart reads, without those that it derives."""
    names = [chart.x, chart.y, chart.line, chart.measured, *chart.choose, *chart.where, *chart.most]
    names += [level.column for level in chart.beside if level.column]
    return [name for name in names if name not in (*chart.derive, *BESIDE)]
