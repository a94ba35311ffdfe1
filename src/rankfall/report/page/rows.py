"""The rows of charts, and the encoding of tables as compact columns for the page."""

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from rankfall.annotations import DataFrame, Series
from rankfall.report.headlines import headlines
from rankfall.report.page.chart import Chart
from rankfall.report.part_numbers import by_parts, row_of
from rankfall.report.selection import select

CELL = (
    "task",
    "training",
    "depth",
    "seed",
    "architecture",
    "setting",
    "apart",
)  # columns that the page looks up by the cell's key
UNREAD = {"mask": "none", "normaliser": "not read"}


def chart_rows(chart: Chart, table: DataFrame) -> DataFrame:
    """Return the numbers of a chart: one per network (or line) for each x and each choice, with the columns of its levels. Other
    differences between rows, such as repeats, are averaged."""
    table = of_chart(chart, table)
    known = table[table[chart.measured].notna() & table[chart.x].notna()]
    levels = [level.column for level in chart.beside if level.column]
    return average(known, keys_of(chart, table), [chart.measured, *levels])


def average(table: DataFrame, by: list[str], columns: list[str]) -> DataFrame:
    return table.groupby(by, dropna=False, sort=True)[columns].mean().astype(float).reset_index()


def done(table: DataFrame) -> DataFrame:
    return table[table.status == "done"] if "status" in table else table


def of_chart(chart: Chart, table: DataFrame, where: Mapping[str, Any] | None = None) -> DataFrame:
    """Return the rows of networks that are done, with the chart's derived columns: those of the chart, or those `where` a level has its
    numbers."""
    table = done(table)
    if "key" not in table:  # a table of components: null means that a component does not read the field
        table = table.assign(**{name: table[name].fillna(word) for name, word in UNREAD.items() if name in table})
    table = select(table.assign(**chart.derive), chart.where if where is None else where)
    for column in chart.most if where is None else ():
        table = table[table[column] == table.groupby("key")[column].transform("max")]
    return table


def keys_of(chart: Chart, table: DataFrame) -> list[str]:
    """Return the columns that distinguish a chart's numbers."""
    networks = "key" in table
    by = [column for column in (chart.line, *chart.choose) if not (networks and column in CELL)]
    by = [name for name in ("key", "seed") if name in table][:1] + by
    by += [chart.x] * (chart.kind != "points") + [chart.y] * (chart.kind == "grid")
    return list(dict.fromkeys(by))


def level_rows(chart: Chart, table: DataFrame, where: Mapping[str, Any]) -> DataFrame:
    """Return the numbers of a level with separate rows: one per network (or line) for each choice."""
    table = of_chart(chart, table, where)
    by = [column for column in keys_of(chart, table) if column != chart.x]
    return average(table[table[chart.measured].notna()], by, [chart.measured])


def select_missing(chart: Chart, table: DataFrame) -> DataFrame:
    """Return the points at which a chart's table has no value, with the reason `why`."""
    table = of_chart(chart, table)
    none = table[table[chart.measured].isna() & table[chart.x].notna()].assign(why="")
    for name in (f"{chart.measured}_reason", "value_reason", "refused"):
        if name in none:
            none["why"] = none.why.where(none.why != "", none[name].fillna(""))
    return none[[*keys_of(chart, table), "why"]].drop_duplicates()


def encode(frame: DataFrame, cells: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Encode a table by columns: texts as indices into a list of values, numbers unchanged. `cells`: key -> index in the list of cells,
    which replaces the column `key`."""
    columns: dict[str, Any] = {}
    for name in frame.columns:
        if name == "key" and cells is not None:
            columns["cell"] = {"values": [cells[key] for key in frame[name]]}
        else:
            columns[name] = column(frame[name])
    return {"rows": len(frame), "columns": columns}


def column(values: Series) -> dict[str, Any]:
    """Encode a column. Nulls and NaN become null, and infinities, which JSON lacks, become texts."""
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


def behind(frames: Mapping[str, DataFrame], cells: DataFrame) -> dict[str, Any]:
    """Return headline -> `networks`, the number of each measured network, and `rows`, positions in its table. `cells` has settings.

    For a number of components, `rows` has a position or null for each row of the scorecard.
    """
    scores = frames.get("scorecard")
    found: dict[str, Any] = {}
    places = {key: number for number, key in enumerate(cells.key)}
    # Rows are selected once for several headlines, because some tables have a hundred thousand rows.
    select_rows = cache(lambda name, rows: rows(done(frames[name])))
    keys_in = cache(lambda name: set(frames[name].key))
    for headline in headlines():
        if scores is None or headline.table not in frames:
            continue
        if headline.components:
            parts = by_parts(done(frames[headline.table]), headline)
            those = (row_of(headline, parts, row) for _, row in scores.iterrows())
            found[headline.name] = {"rows": [None if isinstance(one, str) else int(one.name) for one in those]}
            continue
        chosen = select_rows(headline.table, headline.rows)
        measured = cells.loc[[key in keys_in(headline.table) for key in cells.key]]
        if headline.first == "only trained":
            measured = measured[measured.trained]
        numbers = measured[["key"]].merge(headline.number(chosen)[["key", "number", "why"]], on="key", how="left")
        rows = chosen.index[chosen.key.isin(measured.key)].tolist()
        found[headline.name] = {"networks": encode(numbers.fillna({"why": ""}), places), "rows": rows}
    return found
