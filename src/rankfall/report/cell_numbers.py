"""Headline numbers of single networks, from the tables of their measures: one row a cell with `number`, or with `why` there is none."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame

TENTH, HALF = 0.1, 0.5
TOLERANCE = 1e-6  # of the rank of the value matrix: above float32's rounding, below what a weight says
LONGER = 4.0  # trained lengths
NOTHING, EQUAL = 1e-9, "its task puts in equal tokens, whose residual is 0 from the start"
Line = list[tuple[int, float]]  # layer, value; from layer 0
LEAST = 0.05  # above chance: a share of less is a share of noise


def residual_last(table: DataFrame) -> DataFrame:
    return by_cell(residuals(table), last)


def halving_depth(table: DataFrame) -> DataFrame:
    return by_cell(residuals(table), halved)


def depth_below_tenth(table: DataFrame) -> DataFrame:
    return by_cell(residuals(table), below_tenth)


def residuals(table: DataFrame) -> DataFrame:
    """(key, layer, value) of the relative residual: composite norm about the mean of the tokens, mean over samples."""
    state = (table.place == "state") & (table.quantity == "residual")
    return table[state & (table.matrix_norm == "composite") & (table.centre == "mean")][["key", "layer", "value"]]


def last(line: Line) -> tuple[float | None, str]:
    return (None, EQUAL) if line[0][1] < NOTHING else (line[-1][1], "")


def halved(line: Line) -> tuple[float | None, str]:
    """Between layers log residuals are joined by straight lines."""
    start = line[0][1]
    if start < NOTHING:
        return None, EQUAL
    for (layer, before), (_, value) in itertools.pairwise(line):
        if value <= start * HALF:
            if value <= 0:
                return float(layer) + 1, ""
            return float(layer) + math.log(before / (start * HALF)) / math.log(before / value), ""
    return None, f"at layer {line[-1][0]} it is still {line[-1][1] / start:.2f} of the embedding's"


def below_tenth(line: Line) -> tuple[float | None, str]:
    if line[0][1] < NOTHING:
        return None, EQUAL
    below = next((layer for layer, value in line if value < TENTH), None)
    return (None, f"at layer {line[-1][0]} it is still {line[-1][1]:.2f}") if below is None else (float(below), "")


def short_paths(table: DataFrame) -> DataFrame:
    """Of the largest number of paths; repeats are averaged first."""
    whole = table[table.kind == "whole"].groupby("key").accuracy.mean()
    chance = table[table.kind == "chance"].groupby("key").accuracy.mean()
    chosen = table[(table.kind == "path") & (table.evaluation == "recomputed")]
    chosen = chosen[chosen.paths == chosen.groupby("key").paths.transform("max")]
    chosen = chosen[chosen["length"] <= (chosen.depth // 3).clip(lower=1)]
    best = chosen.groupby(["key", "length"]).accuracy.mean().groupby("key").max()
    found = best.rename("best").to_frame().join(whole.rename("whole")).join(chance.rename("chance"))
    above = found.whole - found.chance
    number = ((found.best - found.chance) / above).where(above >= LEAST)
    why = [f"the network itself is {value:.3f} above chance" if not value >= LEAST else "" for value in above]
    return number.rename("number").to_frame().assign(why=why).reset_index()


def probe_accuracy(table: DataFrame) -> DataFrame:
    known = table[~table.beyond.astype(bool)]
    return plain(known[known["length"] == known.groupby("key")["length"].transform("max")], "accuracy")


def kept(table: DataFrame) -> DataFrame:
    away = (table.times / LONGER).astype(float).map(lambda times: abs(math.log(times)))
    found = table[away == away.groupby(table.key).transform("min")]
    return plain(found, "kept", found.refused.fillna("") if len(found) else None)


def null_dimension(table: DataFrame) -> DataFrame:
    chosen = (table.quantity == "null") & (table.left_out == "nothing") & table.attention_head.notna()
    part = table[chosen & (table.tolerance == TOLERANCE) & table.value.notna()]
    part = part[part.tokens == part.groupby("key").tokens.transform("max")]
    return at_last(part.groupby(["key", "layer"]).value.mean().reset_index())


def identity_rate(table: DataFrame) -> DataFrame:
    asked = (table.candidates == "sentence") & (table.distance == "cosine")
    own = (table["map"] == "linear") & (table.loss == "cosine") & (table.trained_layer == table.layer)
    return at_last(table[(asked & own).fillna(False).astype(bool)].rename(columns={"rate": "value"}))


def own_share(table: DataFrame) -> DataFrame:
    chosen = (table.method == "jacobian") & (table.kept_tokens == "all") & (table.quantity == "own share")
    return at_last(table[chosen & table.value.notna()])


def over_chance(table: DataFrame) -> DataFrame:
    found = table.assign(over=table.test_accuracy - table.chance)
    return plain(found, "over", found.over.isna().map({True: "its task has no accuracy", False: ""}))


def step_ms(table: DataFrame) -> DataFrame:
    return plain(table.assign(ms=1000 * table.seconds / table.steps.where(table.steps > 0)), "ms")


def plain(table: DataFrame, column: str, why: Any = None) -> DataFrame:
    found = table[["key"]].assign(number=table[column].astype(float), why="" if why is None else why)
    return found.assign(why=found.why.where(found.number.isna() & (found.why != ""), ""))


def at_last(lines: DataFrame) -> DataFrame:
    """The value at the last layer of each cell."""
    return plain(lines[lines.layer == lines.groupby("key").layer.transform("max")], "value")


def by_cell(lines: DataFrame, number: Callable[[Line], tuple[float | None, str]]) -> DataFrame:
    """`number` of the values by layer of each cell."""
    import pandas as pd

    lines = lines.sort_values(["key", "layer"])
    rows = zip(lines.key.tolist(), lines.layer.tolist(), lines.value.astype(float).tolist())
    found = [
        (key, *number([(layer, value) for _, layer, value in part]))
        for key, part in itertools.groupby(rows, key=lambda row: row[0])
    ]
    return pd.DataFrame(found, columns=["key", "number", "why"]).astype({"number": float})


OF_CELLS: dict[str, Callable[[Any], Any]] = {
    function.__name__: function
    for function in (
        residual_last,
        halving_depth,
        depth_below_tenth,
        short_paths,
        probe_accuracy,
        kept,
        null_dimension,
        identity_rate,
        own_share,
        over_chance,
        step_ms,
    )
}
