"""The data of the page: the rows of charts, the encoding of tables as compact columns, and their text, compressed JSON in base64, in which
values that cells share are stored once.
"""

import base64
import functools
import json
import math
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from typing import Any

from rankfall.annotations import DataFrame, Series
from rankfall.caches import use
from rankfall.disk import atomic, cache_home
from rankfall.errors import RankfallError
from rankfall.report.headlines import headlines
from rankfall.report.page.chart import Chart
from rankfall.report.part_numbers import by_parts, row_of
from rankfall.report.selection import reasons_of, select

# Columns that the page looks up by the cell's key.
CELL = ("task", "training", "depth", "seed", "architecture", "setting", "apart")
UNREAD = {"mask": "none", "normaliser": "not read"}


def chart_rows(chart: Chart, table: DataFrame) -> DataFrame:
    """Return the numbers of a chart: one per network (or line) for each x and each choice, with the columns of its levels. Other
    differences between rows, such as repeats, are averaged."""
    table = select_rows_of_chart(chart, table)
    measured = table[table[chart.measured].notna() & table[chart.x].notna()]
    levels = [level.column for level in chart.beside if level.column]
    return average_by(measured, distinguishing_columns(chart, table), [chart.measured, *levels])


def average_by(table: DataFrame, by: list[str], columns: list[str]) -> DataFrame:
    """Return the means of columns over the rows that agree in `by`."""
    return table.groupby(by, dropna=False, sort=True)[columns].mean().astype(float).reset_index()


def finished_rows(table: DataFrame) -> DataFrame:
    """Return the rows of cells that are done; all rows of a table without cells."""
    return table[table.status == "done"] if "status" in table else table


def select_rows_of_chart(chart: Chart, table: DataFrame, where: Mapping[str, Any] | None = None) -> DataFrame:
    """Return the finished rows with the chart's derived columns. `where`: the condition on the rows of a level; by default the chart's."""
    table = finished_rows(table)
    if "key" not in table:  # a table of components: null means that a component does not read the field
        table = table.assign(**{name: table[name].fillna(word) for name, word in UNREAD.items() if name in table})
    table = select(table.assign(**chart.derive), chart.where if where is None else where)
    for column in chart.most if where is None else ():
        table = table[table[column] == table.groupby("key")[column].transform("max")]
    return table


def distinguishing_columns(chart: Chart, table: DataFrame) -> list[str]:
    """Return the columns that distinguish a chart's numbers."""
    networks = "key" in table
    by = [column for column in (chart.line, *chart.choose) if not (networks and column in CELL)]
    by = [name for name in ("key", "seed") if name in table][:1] + by
    by += [chart.x] * (chart.kind != "points") + [chart.y] * (chart.kind == "grid")
    return list(dict.fromkeys(by))


def level_rows(chart: Chart, table: DataFrame, where: Mapping[str, Any]) -> DataFrame:
    """Return the numbers of a level with separate rows: one per network (or line) for each choice."""
    table = select_rows_of_chart(chart, table, where)
    by = [column for column in distinguishing_columns(chart, table) if column != chart.x]
    return average_by(table[table[chart.measured].notna()], by, [chart.measured])


def select_missing(chart: Chart, table: DataFrame) -> DataFrame:
    """Return the points at which a chart's table has no value, with the reason `why`."""
    table = select_rows_of_chart(chart, table)
    none = table[table[chart.measured].isna() & table[chart.x].notna()]
    return none.assign(why=reasons_of(none, chart.measured))[
        [*distinguishing_columns(chart, table), "why"]
    ].drop_duplicates()


def encode(frame: DataFrame, cells: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Encode a table by columns: texts as indices into a list of values, numbers unchanged. `cells`: key -> index in the list of cells,
    which replaces the column `key`."""
    columns: dict[str, Any] = {}
    for name in frame.columns:
        if name == "key" and cells is not None:
            columns["cell"] = {"values": [cells[key] for key in frame[name]]}
        else:
            columns[name] = encode_column(frame[name])
    return {"rows": len(frame), "columns": columns}


def encode_column(values: Series) -> dict[str, Any]:
    """Encode a column. Nulls and NaN become null, and infinities, which JSON lacks, become texts."""
    import numpy as np
    import pandas as pd

    if pd.api.types.is_float_dtype(values.dtype):
        floats = values.to_numpy(dtype=float, na_value=math.nan)
        plain: list[Any] = floats.tolist()
        for place in np.flatnonzero(~np.isfinite(floats)):
            plain[place] = None if math.isnan(plain[place]) else "inf" if plain[place] > 0 else "-inf"
        return {"values": plain}
    objects = values.astype(object).where(values.notna(), None)
    if pd.api.types.is_integer_dtype(values.dtype):
        return {"values": objects.tolist()}
    places, distinct = pd.factorize(objects, use_na_sentinel=False)
    return {"of": [None if value is None or value != value else value for value in distinct], "values": places.tolist()}


def behind(frames: Mapping[str, DataFrame], cells: DataFrame) -> dict[str, Any]:
    """Return headline -> `networks`, the number of each measured network, and `rows`, positions in its table. `cells` has settings.

    For a number of components, `rows` has a position or null for each row of the scorecard.
    """
    scores = frames.get("scorecard")
    by_headline: dict[str, Any] = {}
    places = {key: number for number, key in enumerate(cells.key)}
    # Rows are selected once for several headlines, because some tables have a hundred thousand rows.
    select_rows = cache(lambda name, rows: rows(finished_rows(frames[name])))
    keys_in = cache(lambda name: set(frames[name].key))
    for headline in headlines():
        if scores is None or headline.table not in frames:
            continue
        if headline.components:
            parts = by_parts(finished_rows(frames[headline.table]), headline)
            matches = (row_of(headline, parts, row) for _, row in scores.iterrows())
            by_headline[headline.name] = {
                "rows": [None if isinstance(match, str) else int(match.name) for match in matches]
            }
            continue
        chosen = select_rows(headline.table, headline.rows)
        measured = cells.loc[[key in keys_in(headline.table) for key in cells.key]]
        if headline.first == "only trained":
            measured = measured[measured.trained]
        numbers = measured[["key"]].merge(headline.number(chosen)[["key", "number", "why"]], on="key", how="left")
        rows = chosen.index[chosen.key.isin(measured.key)].tolist()
        by_headline[headline.name] = {"networks": encode(numbers.fillna({"why": ""}), places), "rows": rows}
    return by_headline


SEED = "@seed@"


def pack(value: Any) -> str:
    """Encode a value for the function `unpacked` of the page's script."""
    return compress(json.dumps(value, separators=(",", ":"), allow_nan=False))


def compress(text: str) -> str:
    """Compress a text and encode it in base64."""
    return base64.b64encode(zlib.compress(text.encode(), 6)).decode()


def share_values(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Encode the provenance of cells with each different value of a field stored once. Snippets differ between seeds only in the seed."""
    places: dict[str, dict[str, int]] = {}  # field -> text of a value -> its index in the list of values
    cells = {}
    for record in records:
        texts = {name: json.dumps(finite(value)) for name, value in record.items() if name != "key"}
        pairs = [(places.setdefault(name, {}), text) for name, text in texts.items()]
        cells[record["key"]] = [indices.setdefault(text, len(indices)) for indices, text in pairs]
    values = {name: [json.loads(text) for text in indices] for name, indices in places.items()}
    return {"fields": list(places), "values": values, "cells": cells}


def finite(value: Any) -> Any:
    """Replace NaN and infinities, which JSON lacks, by texts."""
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


@functools.cache
def bundle() -> str:
    """Return the library of charts as JavaScript. Bundling takes two seconds, so the text is cached by version if a cache is writable."""
    import vl_convert

    home = cache_home()
    place = home / "vega" / f"library-{version('vl-convert-python')}.js" if home else None
    if place and place.is_file():
        use(place)
        return place.read_text("utf-8")
    text = str(vl_convert.javascript_bundle())  # type: ignore[call-arg]
    if place:
        with suppress(RankfallError), atomic(place) as file:
            file.write(text.encode())
    return text
