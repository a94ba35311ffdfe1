"""Checks that a figure can be drawn from what a configuration measures: columns, values, networks and models in its options will exist.

A figure would report the same errors, but only after hours. The meaning of an option follows from its name. In figures of any author
`where` filters rows by any column, and `task`, `architectures` and the others of ENTRIES name entries of the configuration. In figures of
this package `panels`, `depths` and so on name values of cells, `numbers` names columns, `models` and the others of MEASURED name values of
options of measures, `split` and `metric` name rows of the training history, and `setting` names a setting of the scorecard. In other
packages `width` may be in inches. What only a run can know (that every network diverges) is left to the figure.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rankfall.errors import nearest
from rankfall.filters import as_list, matches_in_table, parts
from rankfall.report.rows import cell_columns
from rankfall.report.schema import CELL_COLUMNS, Table, schema
from rankfall.run.config.least import is_own
from rankfall.run.config.options import description
from rankfall.run.config.problems import problem, show_value
from rankfall.run.plan.cell import Alike
from rankfall.run.plan.graded import graded_pairs

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
# Options that name one of the values of a measure's option.
MEASURED = {
    "models": "model",
    "evaluation": "evaluation",
    "depth": "depths",
    "alpha": "alphas",
    "times": "times",
    "definition": "definition",
}
# Options that have this meaning only for some tables: (table, option) -> the option of the measures that fill the table.
MEASURED_FOR = {
    ("orders", "heads"): "heads",
    ("probe", "attentions"): "attentions",
    ("attention_identity", "tolerance"): "tolerances",
    ("model_attention_identity", "tokens"): "lengths",
    ("model_law", "variants"): "variants",
    ("model_token_identity", "variants"): "variants",
    ("model_token_identity", "phases"): "phase",
}
OF_A_NORM = ("residual", "absolute_residual")  # quantities of the table of residuals
COLUMNS = ("lines", "panels", "x")  # options of the figures in OF_COLUMNS that name columns
OF_COLUMNS = ("sweep", "states", "attention_weights")
LATE = ("key", "status", "reason")  # columns of cells that are known only after a run
KINDS = {"text": (str, dict), "int": (int,), "float": (int, float, str), "bool": (bool,)}  # types of written values
NAMED = 12  # values that an error lists


def check_drawn(
    figure: "FigurePlan",
    measures: Iterable["MeasurePlan"],
    cells: list[Alike],
    selected: Mapping[str, frozenset[str]],
) -> None:
    """Raise if an option of the figure names something that its tables will not have. `selected` maps measures to the keys of their
    cells."""
    path = f"figures.{figure.name}"
    options = _known(figure, path)
    feeding = [measure for measure in measures if measure.table in figure.tables]
    for option, name in MEASURED.items():
        if options.get(option) is not None:
            _check_measured(f"{path}.{option}", as_list(options[option]), name, feeding)
    for (table, option), name in MEASURED_FOR.items():
        if table in figure.tables and options.get(option) not in (None, []):
            _check_measured(f"{path}.{option}", as_list(options[option]), name, _filling(table, feeding))
    _check_norm(path, figure.component.name, options, feeding)
    tables = [schema(name) for name in figure.tables]
    first, where = tables[0], options.get("where")
    filters = where if isinstance(where, Mapping) else {}
    for column, wanted in filters.items():
        _check_column(f"{path}.where.{column}", column, as_list(wanted), first)
    of_columns = COLUMNS if figure.component.name in OF_COLUMNS else ()
    for option in ("numbers", *of_columns):
        for column in as_list(options.get(option, [])):
            if column not in {one.name for one in first.columns}:
                names = sorted(one.name for one in first.columns)
                raise problem(
                    f"{path}.{option}",
                    f"{column!r} is not a column of table {first.name!r}",
                    allowed=names,
                    given=column,
                )
    if "x" in of_columns:
        _check_number(f"{path}.x", options["x"], first)
    of_cells = next((table for table in tables if table.cells), None)
    if of_cells is not None:
        filtered = filters if of_cells is first else {}
        left = _check_cells(path, options, filtered, _feeding_cells(of_cells.name, feeding, cells, selected))
        if first.name == "training":
            _check_graded(path, options, left)
    if first.name == "scorecard" and options.get("setting"):
        _check_setting(f"{path}.setting", options["setting"], as_list(options.get("architectures", [])), cells)


def _known(figure: "FigurePlan", path: str) -> Mapping[str, Any]:
    """Return the options whose meaning is known. For a figure of this package these are all options."""
    found = description("figure", figure.component.name, path)
    if found is None or is_own(found):
        return figure.options
    return {name: value for name, value in figure.options.items() if name in ("where", *ENTRIES)}


def _feeding_cells(
    table: str, feeding: list["MeasurePlan"], cells: list[Alike], selected: Mapping[str, frozenset[str]]
) -> list[Alike]:
    """Return the cells that have rows in a table."""
    filling = {selected[measure.name] for measure in _filling(table, feeding)}
    if not filling:  # the tables of all cells
        return cells
    there = ([cell for cell in some.cells if any(cell.key in keys for keys in filling)] for some in cells)
    return [Alike(left) for left in there if left]


def _filling(table: str, feeding: list["MeasurePlan"]) -> list["MeasurePlan"]:
    return [measure for measure in feeding if measure.table == table]


def _check_measured(path: str, wanted: list[Any], option: str, feeding: list["MeasurePlan"]) -> None:
    """Raise if no measure has one of the values. If its option is null, the measure decides when it runs, so any value may exist."""
    given = [measure.options[option] for measure in feeding if option in measure.options]
    if not given or any(one is None for one in given):
        return
    known = [parts(value)[0] if isinstance(value, Mapping) else value for one in given for value in as_list(one)]
    for value in wanted:
        if value not in known:
            there = ", ".join(map(str, dict.fromkeys(known)))
            raise problem(path, f"{show_value(value)} is not measured; there will be: {there}", given=value)


def _check_norm(path: str, figure: str, options: Mapping[str, Any], feeding: list["MeasurePlan"]) -> None:
    """Check that residuals are measured by this norm, and about the best centre, which is slow to compute."""
    if figure != "residuals" or options.get("quantity", OF_A_NORM[0]) not in OF_A_NORM:
        return
    _check_measured(f"{path}.norm", [options["norm"]], "norms", feeding)
    if options["centre"] == "best" and not any(measure.options.get("best") for measure in feeding):
        hint = "a measure has it with `best`"
        raise problem(f"{path}.centre", "'best' is not measured; there will be: mean", hint=hint)


def _check_number(path: str, name: str, table: Table) -> None:
    """Check that the column of an axis has numbers. Seeds are excluded, since lines are means over them."""
    numbers = [one.name for one in table.columns if one.type in ("int", "float") and one.name != "seed"]
    if name not in numbers:
        raise problem(path, f"column {name!r} cannot be an axis", allowed=sorted(numbers), given=name)


def _check_column(path: str, name: str, wanted: list[Any], table: Table) -> None:
    """Check that the table has the column, and that the values have its type. A table without a declaration has the columns of its rows."""
    columns = {column.name: column for column in table.columns}
    if name not in columns and table.inferred:
        return
    if name not in columns:
        raise problem(path, f"table {table.name!r} has no such column", allowed=sorted(columns), given=name)
    for value in wanted:
        kind = columns[name].type
        if value is not None and not (isinstance(value, KINDS[kind]) and isinstance(value, bool) == (kind == "bool")):
            raise problem(path, f"{show_value(value)} is not a value for a column of type {kind}")


def _check_cells(path: str, options: Mapping[str, Any], where: Mapping[str, Any], cells: list[Alike]) -> list[Alike]:
    """Return the cells that remain after each filter and each option. Raise if none remain, or if a named value does not occur."""
    made: dict[tuple[int, ...], dict[str, Any]] = {}

    def value(some: Alike, column: str) -> Any:
        """Return the value of a column that does not depend on the seed."""
        ident = id(some.task), id(some.architecture), id(some.training)
        if ident not in made:
            made[ident] = cell_columns(some.cells[0])
        return made[ident][column]

    known = {column.name for column in CELL_COLUMNS if not column.provenance} - set(LATE)
    for column in where.keys() & known:
        wanted = as_list(where[column])
        cells = _narrow(f"{path}.where.{column}", column, [wanted], cells, value)
    for option, column in OF_CELLS.items():
        if options.get(option) not in (None, []):
            wanted = as_list(options[option])
            cells = _narrow(f"{path}.{option}", column, [[one] for one in wanted], cells, value)
    panels = options.get("panels")
    drawn = []
    for title, names in panels.items() if isinstance(panels, Mapping) else ():
        if not isinstance(names, list) or not names:
            raise problem(f"{path}.panels.{title}", f"{show_value(names)} is not a list of architectures")
        drawn += _narrow(f"{path}.panels.{title}", "architecture", [[one] for one in names], cells, value)
    return drawn or cells


def _check_graded(path: str, options: Mapping[str, Any], cells: list[Alike]) -> None:
    """Check that a cell will have the metric on the split. A user's task or objective may have any, so then nothing is checked."""
    known = [graded_pairs(some.task, some.training) for some in cells]
    pairs = list(dict.fromkeys(pair for one in known for pair in one or ()))
    split, metric = options.get("split"), options.get("metric")
    if None in known or split is None or metric is None or (split, metric) in pairs:
        return
    splits = list(dict.fromkeys(name for name, _ in pairs))
    if split not in splits:
        what = f"no cell that it could draw has a split {show_value(split)}"
        raise problem(f"{path}.split", what, allowed=splits, given=split)
    metrics = [name for one, name in pairs if one == split]
    what = f"no cell that it could draw has a metric {show_value(metric)} on the split {split}"
    raise problem(f"{path}.metric", what, allowed=metrics, given=metric)


def _check_setting(path: str, label: str, architectures: list[str], cells: list[Alike]) -> None:
    """Check that the scorecard will have the setting. Settings are named by what differs among all cells of the run."""
    from rankfall.report.conform import conform
    from rankfall.report.settings import name_settings

    rows = conform("cells", [cell_columns(some.cells[0]) for some in cells]).to_pandas()
    rows = rows.assign(setting=name_settings(rows))
    there = sorted(rows.setting[rows.architecture.isin(architectures or rows.architecture)].unique())
    if label not in there:
        near = nearest(label, there)
        hint = f"; did you mean {near!r}?" if near else ""
        what = f"{show_value(label)} is not a setting of the scorecard"
        raise problem(path, f"{what}; there will be: {'; '.join(there) or 'nothing'}{hint}")


def _narrow(
    path: str, column: str, groups: list[list[Any]], cells: list[Alike], value: Callable[[Alike, str], Any]
) -> list[Alike]:
    """Return the cells that have one of the values. Raise for a group of values none of which occurs."""
    found = [some.seeds if column == "seed" else [value(some, column)] for some in cells]
    there = {str(one): one for values in found for one in values}
    for group in groups:
        if not any(matches_in_table(one, wanted) for one in there.values() for wanted in group):
            listed_values = ", ".join(sorted(there)[:NAMED]) + (", ..." if len(there) > NAMED else "")
            what = f"no cell that it could draw has {column} {' or '.join(_write_values(group))}"
            raise problem(path, f"{what}; there will be: {listed_values or 'nothing'}", given=group[0])
    good = {
        name for name, one in there.items() if any(matches_in_table(one, item) for group in groups for item in group)
    }
    if column != "seed":
        return [some for some, (one,) in zip(cells, found) if str(one) in good]
    left = (some.with_seeds([seed for seed in seeds if str(seed) in good]) for some, seeds in zip(cells, found))
    return [some for some in left if some.cells]


def _write_values(values: list[Any]) -> Iterator[str]:
    for one in values:
        name, options = parts(one)
        yield " ".join([name, *(f"{key}={option}" for key, option in options.items())])
