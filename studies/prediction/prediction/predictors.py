"""Predictors of networks, known before training: their size, and numbers from measures of networks at their initial values.

A predictor is a number for each untrained network, by its key or by its components. Nothing here uses a trained network.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from rankfall import DataFrame, Series, headlines_by_name, is_missing, last_layer, numbers_by_parts, row_of_parts

LEAST = 1e-30  # smaller gradients count as this
ROUNDING = 1e-16  # smaller residuals count as this


def of_states(quantity: str) -> Callable[[DataFrame], DataFrame]:
    return lambda table: table[(table.quantity == quantity) & (table.left_out == "nothing")]


def last(rows: DataFrame) -> Series:
    """Return the values of the last layer, by key. A network without values is absent."""
    return last_layer(rows).set_index("key").value.astype(float)


def growth(rows: DataFrame, first: int) -> Series:
    """Return log10 of the last layer's value divided by that of layer `first`."""
    start = rows[rows.layer == first].set_index("key").value.astype(float)
    return np.log10(last(rows)) - np.log10(start)


def geometric(rows: DataFrame) -> Series:
    """Return the mean over layers of log10, by key. NaN if a layer has no value."""
    values = rows.assign(log=np.log10(rows.value.astype(float).clip(lower=LEAST)))
    return values.groupby("key").log.agg(lambda one: one.mean(skipna=False))


def of_gradients(by: str) -> Callable[[DataFrame], DataFrame]:
    return lambda table: table[table.of == by]


def mean_of_layers(rows: DataFrame) -> Series:
    return rows.assign(value=rows.value.astype(float)).groupby("key").value.agg(lambda one: one.mean(skipna=False))


def of_weights(quantity: str) -> Callable[[DataFrame], DataFrame]:
    return lambda table: table[
        (table.quantity == quantity) & (table.left_out == "nothing") & table.attention_head.isna()
    ]


def own_share(table: DataFrame) -> Series:
    rows = table[(table.method == "jacobian") & (table.quantity == "own share") & (table.kept_tokens == "all")]
    return last(rows)


# Predictors of networks: functions from a table to a number for each key.
OF_TABLE: Mapping[str, Callable[[DataFrame], Series]] = {
    "residual": lambda table: np.log10(last(of_states("residual")(table)).clip(lower=ROUNDING)),
    "cosine": lambda table: last(of_states("cosine")(table)),
    "stable_rank": lambda table: last(of_states("stable_rank")(table)),
    "norm_growth": lambda table: growth(of_states("norm")(table), 0),
    "gradient_queries": lambda table: geometric(of_gradients("queries")(table)),
    "gradient_keys": lambda table: geometric(of_gradients("keys")(table)),
    "gradient_values": lambda table: geometric(of_gradients("values")(table)),
    "gradient_ratio": lambda table: (
        geometric(of_gradients("queries")(table)) - geometric(of_gradients("values")(table))
    ),
    "gradient_growth": lambda table: growth(of_gradients("input")(table), 1),
    "loss": lambda table: table[table.of == "input"].groupby("key").loss.first().astype(float),
    "entropy": lambda table: mean_of_layers(of_weights("entropy")(table)),
    "own_share": own_share,
}
HEADLINES_OF = {"order": "order", "distinct_rows": "probe_rows"}  # of what mixes tokens: numbers of components


def of_network(name: str, table: DataFrame | None, born: DataFrame) -> Series:
    """Return a predictor of untrained networks, by key, NaN if there is none. `born` are their rows of the table `cells`."""
    nothing = pd.Series(np.nan, index=pd.Index(born.key, name="key"))
    if table is None or not len(table):
        return nothing
    if name in OF_TABLE:
        with np.errstate(divide="ignore", invalid="ignore"):
            found = OF_TABLE[name](table[table.key.isin(born.key)]).reindex(born.key)
        return found.where(np.isfinite(found))
    headline = headlines_by_name(HEADLINES_OF[name])
    rows = numbers_by_parts(table, headline)
    assert rows is not None
    made = {key: of_parts(headline, rows, row) for key, row in zip(born.key, born.to_dict("records"))}
    return pd.Series(made, dtype=float).reindex(born.key)


def of_parts(headline: Any, rows: Any, row: Mapping[str, Any]) -> float:
    one = row_of_parts(headline, rows, row)
    if isinstance(one, str):
        return float("nan")
    number = headline.number(one).number
    return float("nan") if is_missing(number) else float(number)


def sizes(table: DataFrame | None) -> Series:
    """Return the parameters of each network, by key."""
    if table is None:
        return pd.Series(dtype=float)
    return table[table.part == "all"].set_index("key")["count"].astype(float)
