"""What is known of a network before it is trained: its size, and predictors from measures of networks at their initial values.

A predictor is a number for each untrained network, by its key, or by what it is made of. Nothing here has seen a trained network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankfall.report.cell_numbers import at_last
from rankfall.report.headlines import by_name
from rankfall.report.part_numbers import by_parts, missing, row_of

if TYPE_CHECKING:
    from pandas import DataFrame, Series

LEAST = 1e-30  # gradients below are alike
ROUNDING = 1e-16  # and residuals


@dataclass(frozen=True)
class Predictor:
    """`of`: its table to a number for each key; or, where `headline` names a number of components, that."""

    table: str
    meaning: str
    of: Callable[[DataFrame], Series] | None = None
    headline: str = ""


def of_states(quantity: str) -> Callable[[DataFrame], DataFrame]:
    return lambda table: table[(table.quantity == quantity) & (table.left_out == "nothing")]


def last(rows: DataFrame) -> Series:
    """Of the last layer, by key; none where a network has none."""
    return at_last(rows).set_index("key").value.astype(float)


def growth(rows: DataFrame, first: int) -> Series:
    """log10 of the last layer's value over that of layer `first`."""
    start = rows[rows.layer == first].set_index("key").value.astype(float)
    return np.log10(last(rows)) - np.log10(start)


def geometric(rows: DataFrame) -> Series:
    """Mean over layers of log10, by key; none where a layer has none."""
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


PREDICTORS: Mapping[str, Predictor] = {
    "residual": Predictor(
        "states",
        "log10 of |res(X)| / |X| after the last layer",
        lambda table: np.log10(last(of_states("residual")(table)).clip(lower=ROUNDING)),
    ),
    "cosine": Predictor(
        "states", "mean cosine between tokens after the last layer", lambda table: last(of_states("cosine")(table))
    ),
    "stable_rank": Predictor(
        "states",
        "sum s^2 / max s^2 of the states after the last layer",
        lambda table: last(of_states("stable_rank")(table)),
    ),
    "norm_growth": Predictor(
        "states",
        "log10 of the states' root mean square after the last layer over that before the first",
        lambda table: growth(of_states("norm")(table), 0),
    ),
    "gradient_queries": Predictor(
        "gradients",
        "mean over layers of log10 of the norm of the loss's gradient by the weights of queries",
        lambda table: geometric(of_gradients("queries")(table)),
    ),
    "gradient_keys": Predictor(
        "gradients", "the same by those of keys", lambda table: geometric(of_gradients("keys")(table))
    ),
    "gradient_values": Predictor(
        "gradients", "the same by those of values", lambda table: geometric(of_gradients("values")(table))
    ),
    "gradient_ratio": Predictor(
        "gradients",
        "log10 of queries' gradients over values', mean over layers",
        lambda table: geometric(of_gradients("queries")(table)) - geometric(of_gradients("values")(table)),
    ),
    "gradient_growth": Predictor(
        "gradients",
        "log10 of the gradient by what enters the last layer over that by what enters the first: below 0 it grows on its way back",
        lambda table: growth(of_gradients("input")(table), 1),
    ),
    "loss": Predictor(
        "gradients",
        "the loss at birth",
        lambda table: table[table.of == "input"].groupby("key").loss.first().astype(float),
    ),
    "entropy": Predictor(
        "attention_weights",
        "entropy of rows of attention weights, mean over rows, heads and layers",
        lambda table: mean_of_layers(of_weights("entropy")(table)),
    ),
    "own_share": Predictor(
        "attribution", "share of a token's state after the last layer that comes from its own input", own_share
    ),
    "order": Predictor("orders", "order of contraction of the attention by itself", headline="order"),
    "distinct_rows": Predictor(
        "probe", "share of n equal tokens that random weights tell apart", headline="probe_rows"
    ),
}


def of_network(name: str, table: DataFrame | None, born: DataFrame) -> Series:
    """A predictor of untrained networks, by key; NaN where there is none. `born`: their rows of the table `cells`."""
    import pandas as pd

    predictor = PREDICTORS[name]
    nothing = pd.Series(np.nan, index=pd.Index(born.key, name="key"))
    if table is None or not len(table):
        return nothing
    if predictor.of is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            found = predictor.of(table[table.key.isin(born.key)]).reindex(born.key)
        return found.where(np.isfinite(found))
    headline = by_name(predictor.headline)
    rows = by_parts(table, headline)
    assert rows is not None
    made = {key: of_parts(headline, rows, row) for key, row in zip(born.key, born.to_dict("records"))}
    return pd.Series(made, dtype=float).reindex(born.key)


def of_parts(headline: Any, rows: Any, row: Mapping[str, Any]) -> float:
    one = row_of(headline, rows, row)
    if isinstance(one, str):
        return float("nan")
    number = headline.number(one).number
    return float("nan") if missing(number) else float(number)


def sizes(table: DataFrame | None) -> Series:
    """Parameters of each network, by key."""
    import pandas as pd

    if table is None:
        return pd.Series(dtype=float)
    return table[table.part == "all"].set_index("key")["count"].astype(float)
