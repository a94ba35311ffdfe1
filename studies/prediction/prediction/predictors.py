"""Read the predictors of networks, which are known before training: their size, and numbers from measures at their initial values.

A predictor is a number for each untrained network, by its key or by its components. Nothing here uses a trained network.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from rankfall import (
    DataFrame,
    Series,
    headlines_by_name,
    is_missing,
    last_layer,
    numbers_by_parts,
    row_of_parts,
    select_rows,
)

LEAST = 1e-30  # smaller gradients count as this
ROUNDING = 1e-16  # smaller residuals count as this


def last(rows: DataFrame) -> Series:
    """Return the values of the last layer, by key. A network without values is absent."""
    return last_layer(rows).set_index("key").value.astype(float)


def growth(rows: DataFrame, first: int) -> Series:
    """Return log10 of the last layer's value divided by that of layer `first`."""
    start = rows[rows.layer == first].set_index("key").value.astype(float)
    return np.log10(last(rows)) - np.log10(start)


def mean_of_layers(rows: DataFrame) -> Series:
    """Return the mean over layers, by key. NaN if a layer has no value."""
    values = rows.set_index("key").value.astype(float)
    return values.groupby("key").agg(lambda layers: layers.mean(skipna=False))


def logs_of_gradients(table: DataFrame, kind: str) -> Series:
    """Return the mean over layers of log10 of the gradients by one kind of weights, by key."""
    rows = select_rows(table, {"of": kind})
    return mean_of_layers(rows.assign(value=np.log10(rows.value.astype(float).clip(lower=LEAST))))


def whole(table: DataFrame, quantity: str) -> DataFrame:
    """Return the rows of a quantity of all tokens and channels."""
    return select_rows(table, {"quantity": quantity, "left_out": "nothing"})


OWN_SHARE = {"method": "jacobian", "quantity": "own share", "kept_tokens": "all"}
# Predictor of networks -> function from a table to a number for each key.
FROM_TABLE: Mapping[str, Callable[[DataFrame], Series]] = {
    "residual": lambda table: np.log10(last(whole(table, "residual")).clip(lower=ROUNDING)),
    "cosine": lambda table: last(whole(table, "cosine")),
    "stable_rank": lambda table: last(whole(table, "stable_rank")),
    "norm_growth": lambda table: growth(whole(table, "norm"), 0),
    "gradient_queries": lambda table: logs_of_gradients(table, "queries"),
    "gradient_keys": lambda table: logs_of_gradients(table, "keys"),
    "gradient_values": lambda table: logs_of_gradients(table, "values"),
    "gradient_ratio": lambda table: logs_of_gradients(table, "queries") - logs_of_gradients(table, "values"),
    "gradient_growth": lambda table: growth(select_rows(table, {"of": "input"}), 1),
    "loss": lambda table: table[table.of == "input"].groupby("key").loss.first().astype(float),
    # Rows without a head are means over heads.
    "entropy": lambda table: mean_of_layers(whole(table[table.attention_head.isna()], "entropy")),
    "own_share": lambda table: last(select_rows(table, OWN_SHARE)),
}
# Predictor -> headline that is a number of the mixing components.
HEADLINES = {"order": "order", "distinct_rows": "probe_rows"}


def predictor_values(name: str, table: DataFrame | None, born: DataFrame) -> Series:
    """Return a predictor of untrained networks, by key, NaN if there is none. `born` are their rows of the table `cells`."""
    nothing = pd.Series(np.nan, index=pd.Index(born.key, name="key"))
    if table is None or not len(table):
        return nothing
    if name in FROM_TABLE:
        with np.errstate(divide="ignore", invalid="ignore"):
            values = FROM_TABLE[name](table[table.key.isin(born.key)]).reindex(born.key)
        return values.where(np.isfinite(values))
    headline = headlines_by_name(HEADLINES[name])
    rows = numbers_by_parts(table, headline)
    assert rows is not None
    numbers = {key: headline_number(headline, rows, row) for key, row in zip(born.key, born.to_dict("records"))}
    return pd.Series(numbers, dtype=float).reindex(born.key)


def headline_number(headline: Any, rows: Any, row: Mapping[str, Any]) -> float:
    """Return a headline's number for the components of a network, NaN if there is none."""
    chosen = row_of_parts(headline, rows, row)
    if isinstance(chosen, str):
        return float("nan")
    number = headline.number(chosen).number
    return float("nan") if is_missing(number) else float(number)


def sizes(table: DataFrame | None) -> Series:
    """Return the parameters of each network, by key."""
    if table is None:
        return pd.Series(dtype=float)
    return table[table.part == "all"].set_index("key")["count"].astype(float)
