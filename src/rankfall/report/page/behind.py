"""The data behind a number of the scorecard: the number of each network, and the rows of its table."""

from collections.abc import Mapping
from typing import Any

from rankfall.annotations import DataFrame
from rankfall.report.headlines import Headline, headlines
from rankfall.report.page.rows import encode
from rankfall.report.part_numbers import by_parts, row_of


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
