"""Numbers of single networks for headlines, computed from rows of a table: one row per network with `number`, or with the reason `why` it
has none, and a column for each number that it is compared with (`Headline.beside`)."""

import itertools
import math
from collections.abc import Callable
from typing import Any

from rankfall.annotations import DataFrame, Series

Line = list[tuple[int, float]]  # layer, value; from layer 0
NOTHING = 1e-9  # a relative residual up to this is rounding of equal tokens
EQUAL = "its task puts in equal tokens, whose residual is 0 from the start"


def all_rows(table: DataFrame) -> DataFrame:
    """Return the table itself, for headlines that use all rows."""
    return table


def plain(table: DataFrame, column: str, why: Any = None, **beside: Series) -> DataFrame:
    """Return a column of the table as the numbers of networks; `beside`: name in the headline -> values that they are compared with."""
    numbers = table[["key"]].assign(number=table[column].astype(float), why="" if why is None else why)
    compared = {name: values.astype(float) for name, values in beside.items()}
    return numbers.assign(why=numbers.why.where(numbers.number.isna() & (numbers.why != ""), ""), **compared)


def at_last(lines: DataFrame) -> DataFrame:
    """Return the rows of the last layer of each cell."""
    return lines[lines.layer == lines.groupby("key").layer.transform("max")]


def by_cell(lines: DataFrame, number: Callable[[Line], tuple[float | None, str]], *, whole: bool = False) -> DataFrame:
    """Compute `number` for each cell from its values by layer, up to the first layer without a value. If `number` returns None there, the
    cell has that layer's reason. `whole`: the number needs all layers, so that a missing value always gives the reason."""
    import pandas as pd

    lines = lines.sort_values(["key", "layer"])
    reasons = lines.value_reason.fillna("").tolist() if "value_reason" in lines else [""] * len(lines)
    rows = zip(lines.key.tolist(), lines.layer.tolist(), lines.value.astype(float).tolist(), reasons)
    numbers = []
    for key, part in itertools.groupby(rows, key=lambda row: row[0]):
        line = [(layer, value, reason) for _, layer, value, reason in part]
        clear = list(itertools.takewhile(lambda point: not math.isnan(point[1]), line))
        value, why = number([(layer, value) for layer, value, _ in clear]) if clear else (None, "")
        if len(clear) < len(line) and (value is None or whole) and why != EQUAL:
            layer, _, reason = line[len(clear)]
            value, why = None, f"from layer {layer} on there is no residual" + (f": {reason}" if reason else "")
        numbers.append((key, value, why))
    return pd.DataFrame(numbers, columns=["key", "number", "why"]).astype({"number": float})
