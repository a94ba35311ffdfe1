"""A chart's rows, from its table, and tables as compact columns: what the page has in it."""

import math
from collections.abc import Mapping
from typing import Any

from rankfall.annotations import DataFrame, Series
from rankfall.report.page.chart import Chart
from rankfall.report.selection import select

CELL = ("task", "training", "depth", "seed", "architecture", "setting", "apart")  # of a cell: looked up by its key
UNREAD = {"mask": "none", "normaliser": "not read"}


def prepare(chart: Chart, table: DataFrame) -> DataFrame:
    """The rows of networks that are done, with what is derived from them."""
    if "status" in table:
        table = table[table.status == "done"]
    if "key" not in table:  # of components: what does not read masks stands where there is none
        table = table.assign(**{name: table[name].fillna(word) for name, word in UNREAD.items() if name in table})
    return table.assign(**chart.derive)


def chart_rows(chart: Chart, table: DataFrame) -> DataFrame:
    """Its numbers: one a network (or line) for each x and each choice, and beside each the columns of its levels. What else rows differ in,
    such as repeats, is averaged."""
    table = of_chart(chart, prepare(chart, table))
    known = table[table[chart.measured].notna() & table[chart.x].notna()]
    levels = [level.column for level in chart.beside if level.column]
    found = known.groupby(keys_of(chart, table), dropna=False, sort=True)[[chart.measured, *levels]].mean()
    return found.astype(float).reset_index()


def of_chart(chart: Chart, table: DataFrame) -> DataFrame:
    table = select(table, chart.where)
    for column in chart.most:
        table = table[table[column] == table.groupby("key")[column].transform("max")]
    return table


def keys_of(chart: Chart, table: DataFrame) -> list[str]:
    """The columns that tell a chart's numbers apart."""
    networks = "key" in table
    of_rows = [column for column in (chart.line, *chart.choose) if not (networks and column in CELL)]
    by = ["key"] if networks else ["seed"] if "seed" in table else []
    by = [*by, *of_rows, *([chart.x] if chart.kind != "points" else [])]
    if chart.kind == "grid":
        by.append(chart.y)
    return list(dict.fromkeys(by))


def level_rows(chart: Chart, table: DataFrame, where: Mapping[str, Any]) -> DataFrame:
    """A level that has rows of its own: one number a network (or line) for each choice that such rows know."""
    table = select(prepare(chart, table), where)
    by = [column for column in keys_of(chart, table) if column != chart.x]
    known = table[table[chart.measured].notna()]
    return known.groupby(by, dropna=False, sort=True)[chart.measured].mean().astype(float).reset_index()


def select_missing(chart: Chart, table: DataFrame) -> DataFrame:
    """Places at which a network's table has no value, with `why`."""
    table = of_chart(chart, prepare(chart, table))
    none = table[table[chart.measured].isna() & table[chart.x].notna()]
    reasons = [name for name in (f"{chart.measured}_reason", "value_reason", "refused") if name in none]
    why = none[reasons].astype("string").fillna("").apply(lambda row: next((text for text in row if text), ""), axis=1)
    none = none.assign(why=why if len(none) and reasons else "")
    return none[[*keys_of(chart, table), "why"]].drop_duplicates()


def encode(frame: DataFrame, cells: Mapping[str, int] | None = None) -> dict[str, Any]:
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
