"""A chart's rows, from its table, and tables as compact columns: what the page has in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rankfall.report.page.charts import Chart
from rankfall.report.selection import clear

if TYPE_CHECKING:
    from pandas import DataFrame, Series

CELL = ("task", "training", "depth", "seed", "architecture", "setting", "apart")  # of a cell: looked up by its key


def own(table: DataFrame) -> Series:
    """Maps on the layer that they were trained on."""
    return (table.trained_layer.isna() | (table.trained_layer == table.layer)).astype(bool)


def trained(table: DataFrame) -> Series:
    return table.epochs > 0


def curve(table: DataFrame) -> Series:
    """What an influence is of: a formula, or a network with a position encoding."""
    network = table.network.where(table.network == "none", " of " + table.network + ", position " + table.position)
    return table.source + network.where(table.network != "none", "")


DERIVED: dict[str, Callable[[Any], Any]] = {"own": own, "trained": trained, "curve": curve, "clear": clear}


def chart_rows(chart: Chart, table: DataFrame) -> DataFrame:
    """Its numbers: one a network (or line) for each x and each choice. What else rows differ in, such as repeats, is averaged."""
    if "status" in table:
        table = table[table.status == "done"]
    table = table.assign(**{name: made for name, made in DERIVED.items() if name in (*chart.where, chart.line)})
    for column, wanted in chart.where.items():
        table = table[(table[column] == wanted).fillna(False).astype(bool)]
    networks = "key" in table
    for column in chart.most:
        table = table[table[column] == table.groupby("key")[column].transform("max")]
    of_rows = [column for column in (chart.line, *chart.choose) if not (networks and column in CELL)]
    by = ["key"] if networks else ["seed"] if "seed" in table else []
    by = [*by, *of_rows, *([chart.x] if chart.kind != "points" else [])]
    if chart.kind == "grid":
        by.append(chart.y)
    by = list(dict.fromkeys(by))
    known = table[table[chart.measured].notna() & table[chart.x].notna()]
    found = known.groupby(by, dropna=False, sort=True)[chart.measured].mean()
    return found.astype(float).reset_index()


def encoded(frame: DataFrame, cells: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Columns: texts as numbers of a list of values, numbers as they are. `cells`: key -> place in the list of cells, for `key`."""
    columns: dict[str, Any] = {}
    for name in frame.columns:
        if name == "key" and cells is not None:
            columns["cell"] = {"values": [cells[key] for key in frame[name]]}
        else:
            columns[name] = column(frame[name])
    return {"rows": len(frame), "columns": columns}


def column(values: Series) -> dict[str, Any]:
    """A null is null, and so is NaN; infinities, which JSON lacks, are texts."""
    import numpy as np
    import pandas as pd

    if pd.api.types.is_float_dtype(values.dtype):
        floats = values.to_numpy(dtype=float, na_value=math.nan)
        plain: list[Any] = floats.tolist()
        for place in np.flatnonzero(~np.isfinite(floats)):
            plain[place] = None if math.isnan(plain[place]) else "inf" if plain[place] > 0 else "-inf"
        return {"values": plain}
    if values.dtype == "Int64":
        return {"values": values.astype(object).where(values.notna(), None).tolist()}
    if pd.api.types.is_integer_dtype(values.dtype):
        return {"values": values.tolist()}
    places, of = pd.factorize(values.astype(object).where(values.notna(), None), use_na_sentinel=False)
    return {"of": [None if one is None or one != one else one for one in of], "values": places.tolist()}
