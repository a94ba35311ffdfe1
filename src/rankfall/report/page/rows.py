"""The rows of charts, and the encoding of tables as compact columns for the page."""

import math
from collections.abc import Mapping
from typing import Any

from rankfall.annotations import DataFrame, Series
from rankfall.report.headlines import Headline, headlines
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


def prepare(chart: Chart, table: DataFrame) -> DataFrame:
    """Return the rows of networks that are done, with the chart's derived columns."""
    if "status" in table:
        table = table[table.status == "done"]
    if "key" not in table:  # a table of components: null means that a component does not read the field
        table = table.assign(**{name: table[name].fillna(word) for name, word in UNREAD.items() if name in table})
    return table.assign(**chart.derive)


def chart_rows(chart: Chart, table: DataFrame) -> DataFrame:
    """Return the numbers of a chart: one per network (or line) for each x and each choice, with the columns of its levels. Other
    differences between rows, such as repeats, are averaged."""
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
    """Return the columns that distinguish a chart's numbers."""
    networks = "key" in table
    of_rows = [column for column in (chart.line, *chart.choose) if not (networks and column in CELL)]
    by = ["key"] if networks else ["seed"] if "seed" in table else []
    by = [*by, *of_rows, *([chart.x] if chart.kind != "points" else [])]
    if chart.kind == "grid":
        by.append(chart.y)
    return list(dict.fromkeys(by))


def level_rows(chart: Chart, table: DataFrame, where: Mapping[str, Any]) -> DataFrame:
    """Return the numbers of a level with separate rows: one per network (or line) for each choice."""
    table = select(prepare(chart, table), where)
    by = [column for column in keys_of(chart, table) if column != chart.x]
    known = table[table[chart.measured].notna()]
    return known.groupby(by, dropna=False, sort=True)[chart.measured].mean().astype(float).reset_index()


def select_missing(chart: Chart, table: DataFrame) -> DataFrame:
    """Return the points at which a chart's table has no value, with the reason `why`."""
    table = of_chart(chart, prepare(chart, table))
    none = table[table[chart.measured].isna() & table[chart.x].notna()]
    reasons = [name for name in (f"{chart.measured}_reason", "value_reason", "refused") if name in none]
    why = none[reasons].astype("string").fillna("").apply(lambda row: next((text for text in row if text), ""), axis=1)
    none = none.assign(why=why if len(none) and reasons else "")
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
    if scores is None:
        return {}
    kept = {name: table[table.status == "done"] if "status" in table else table for name, table in frames.items()}
    found: dict[str, Any] = {}
    selected: dict[Any, DataFrame] = {}
    keys_of: dict[str, set[str]] = {}
    places = {key: number for number, key in enumerate(cells.key)}
    for headline in headlines():
        if headline.table not in frames:
            continue
        if headline.components:
            parts = by_parts(kept.get(headline.table), headline)
            found[headline.name] = {"rows": [row_position(headline, parts, row) for _, row in scores.iterrows()]}
            continue
        source = headline.table, headline.rows
        if source not in selected:
            selected[source] = headline.rows(kept[headline.table])
        if headline.table not in keys_of:  # cached, because some tables have a hundred thousand rows
            keys_of[headline.table] = set(frames[headline.table].key)
        measured = cells.loc[[key in keys_of[headline.table] for key in cells.key], ["key", "trained"]]
        if headline.first == "only trained":
            measured = measured[measured.trained]
        keys = measured[["key"]]
        numbers = keys.merge(headline.number(selected[source])[["key", "number", "why"]], on="key", how="left")
        wanted, chosen = set(keys.key), selected[source]
        rows = [at for at, key in zip(chosen.index.tolist(), chosen.key.tolist(), strict=True) if key in wanted]
        found[headline.name] = {"networks": encode(numbers.fillna({"why": ""}), places), "rows": rows}
    return found


def row_position(headline: Headline, rows: Any, row: Any) -> int | None:
    one = None if rows is None else row_of(headline, rows, row)
    return None if one is None or isinstance(one, str) else int(one.name)
