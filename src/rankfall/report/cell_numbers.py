"""Headline numbers of single networks, from the tables of their measures: one row a cell with `number`, or with `why` there is none, and
with what a headline is compared with (`Headline.beside`), a column each.

Each is made in two steps: the rows of the table that it is made of, which the page shows, and the number of each network's rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rankfall.report.processors import MEASURED
from rankfall.report.selection import lacking

if TYPE_CHECKING:
    from pandas import DataFrame, Series

TENTH, HALF = 0.1, 0.5
TOLERANCE = 1e-6  # of the rank of the value matrix: above float32's rounding, below what a weight says
LONGER = 4.0  # trained lengths
NOTHING, EQUAL = 1e-9, "its task puts in equal tokens, whose residual is 0 from the start"
Line = list[tuple[int, float]]  # layer, value; from layer 0
STILL = "it is still"  # in the reason of a line that does not fall so far, and of no other
LEAST = 0.05  # above chance: a share of less is a share of noise


def residuals(table: DataFrame) -> DataFrame:
    """Of the relative residual: composite norm about the mean of the tokens, mean over samples."""
    state = (table.place == "state") & (table.quantity == "residual")
    return table[state & (table.matrix_norm == "composite") & (table.centre == "mean")]


def residual_last(rows: DataFrame) -> DataFrame:
    floors = at_last(rows).groupby("key").floor_share.mean()
    found = by_cell(rows, last)
    return found.assign(floor=found.key.map(floors).astype(float))


def law(table: DataFrame) -> DataFrame:
    return table


def beyond_range(rows: DataFrame) -> dict[str, str]:
    """Networks whose state leaves the range of float64 in a sample, and from which layer on: that is no rounding, and no 0."""
    if "value_reason" not in rows:
        return {}
    gone = rows[rows.log10_residual.isna() & rows.value_reason.fillna("").str.startswith("the state")]
    first = gone.sort_values("layer").groupby("key")[["layer", "value_reason"]].first()
    return {key: f"from layer {row.layer} on there is none: {row.value_reason}" for key, row in first.iterrows()}


def log_residual(rows: DataFrame) -> DataFrame:
    """No number from the first layer on at which a sample's rows are equal to the last digit, or rounding noise."""
    last = at_last(rows).groupby("key").log10_residual.mean()
    gone = rows[lacking(rows)].groupby("key").layer.min().astype(float)
    found = last.where(~last.index.isin(gone.index)).rename("number").to_frame().join(gone.rename("gone"))
    said = beyond_range(rows)
    why = [
        "" if missing != missing else said.get(key) or f"at layer {missing:.0f} it is rounding noise, or 0"
        for key, missing in found.gone.items()
    ]
    return found.assign(why=why).reset_index()[["key", "number", "why"]]


def halving_depth(rows: DataFrame) -> DataFrame:
    return by_cell(rows, halved)


def depth_below_tenth(rows: DataFrame) -> DataFrame:
    return by_cell(rows, below_tenth)


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
    return None, f"at layer {line[-1][0]} {STILL} {line[-1][1] / start:.2f} of the embedding's"


def below_tenth(line: Line) -> tuple[float | None, str]:
    if line[0][1] < NOTHING:
        return None, EQUAL
    below = next((layer for layer, value in line if value < TENTH), None)
    return (None, f"at layer {line[-1][0]} {STILL} {line[-1][1]:.2f}") if below is None else (float(below), "")


def short(table: DataFrame) -> DataFrame:
    """Short paths of the largest number of paths, the whole network and chance."""
    paths = table[(table.kind == "path") & (table.evaluation == "recomputed")]
    paths = paths[paths.paths == paths.groupby("key").paths.transform("max")]
    paths = paths[paths["length"] <= (paths.depth // 3).clip(lower=1)]
    return table[table.kind.isin(["whole", "chance"]) | table.index.isin(paths.index)]


def short_paths(rows: DataFrame) -> DataFrame:
    """Repeats are averaged first."""
    whole = rows[rows.kind == "whole"].groupby("key").accuracy.mean()
    chance = rows[rows.kind == "chance"].groupby("key").accuracy.mean()
    best = rows[rows.kind == "path"].groupby(["key", "length"]).accuracy.mean().groupby("key").max()
    found = best.rename("best").to_frame().join(whole.rename("whole")).join(chance.rename("chance"))
    above = found.whole - found.chance
    number = ((found.best - found.chance) / above).where(above >= LEAST)
    sides = [f"{abs(value):.3f} {'below' if value < 0 else 'above'}" for value in above]
    why = [f"the network itself is {side} chance" if not value >= LEAST else "" for side, value in zip(sides, above)]
    return number.rename("number").to_frame().assign(why=why).reset_index()


def longest_trained(table: DataFrame) -> DataFrame:
    known = table[~table.beyond.astype(bool)]
    return known[known["length"] == known.groupby("key")["length"].transform("max")]


def probe_accuracy(rows: DataFrame) -> DataFrame:
    return plain(rows, "accuracy", chance=rows.chance, ceiling=rows.ceiling)


def longer(table: DataFrame) -> DataFrame:
    away = (table.times / LONGER).astype(float).map(lambda times: abs(math.log(times)))
    found = table[away == away.groupby(table.key).transform("min")]
    return found[found.times == found.groupby("key").times.transform("max")]  # twice and 8 times are as near to 4


def kept(rows: DataFrame) -> DataFrame:
    trained = rows.accuracy_trained.where(rows.accuracy_trained > 0)
    return plain(rows, "kept", rows.refused.fillna("") if len(rows) else None, chance=rows.chance / trained)


def free(table: DataFrame) -> DataFrame:
    chosen = (table.quantity == "null") & (table.left_out == "nothing") & table.attention_head.notna()
    part = table[chosen & (table.tolerance == TOLERANCE)]
    return at_last(part[part.tokens == part.groupby("key").tokens.transform("max")])


def null_dimension(rows: DataFrame) -> DataFrame:
    heads = rows.groupby("key").value
    return plain(heads.mean().where(heads.count() == heads.size()).reset_index(), "value")


def found_again(table: DataFrame) -> DataFrame:
    asked = (table.candidates == "sentence") & (table.distance == "cosine")
    own = (table["map"] == "linear") & (table.loss == "cosine") & (table.trained_layer == table.layer)
    return at_last(table[(asked & own).fillna(False).astype(bool)])


def identity_rate(rows: DataFrame) -> DataFrame:
    return plain(rows, "rate", chance=rows.chance)


def own(table: DataFrame) -> DataFrame:
    chosen = (table.method == "jacobian") & (table.kept_tokens == "all") & (table.quantity == "own share")
    return at_last(table[chosen])


def own_share(rows: DataFrame) -> DataFrame:
    return plain(rows, "value", chance=rows.samples / rows.tokens)


def cells(table: DataFrame) -> DataFrame:
    return table


def accuracy(rows: DataFrame) -> DataFrame:
    return plain(rows, "test_accuracy", without_accuracy(rows), chance=rows.chance)


def over_chance(rows: DataFrame) -> DataFrame:
    found = rows.assign(over=rows.test_accuracy - rows.chance)
    return plain(found, "over", without_accuracy(rows), ceiling=1 - rows.chance)


def without_accuracy(rows: DataFrame) -> Series:
    return rows.test_accuracy.isna().map({True: "its task has no accuracy", False: ""})


def step_ms(rows: DataFrame) -> DataFrame:
    """`by`: what the time belongs to beside the network."""
    return plain(rows, "step_ms", "no step was timed").assign(by=computed_by(rows))


def computed_by(rows: DataFrame) -> Series:
    """Engine, device, threads, size of the stack and processor, as far as they are known."""
    threads, together = rows.threads.astype("Int64"), rows.together.astype("Int64")
    said = rows.engine.fillna("engine unknown") + " on " + rows.device.fillna("a device unknown")
    said = said + (
        ", " + threads.astype("string") + " thread" + (threads != 1).fillna(False).map({True: "s", False: ""})
    ).fillna("")
    said = said + (", " + together.astype("string") + " at once").fillna("")
    processor = rows.processor.astype("string").str.partition(MEASURED)[0] if len(rows) else rows.processor
    return said + (", " + processor).fillna("")


def plain(table: DataFrame, column: str, why: Any = None, **beside: Series) -> DataFrame:
    """`beside`: what the number is compared with, by the names of the headline."""
    found = table[["key"]].assign(number=table[column].astype(float), why="" if why is None else why)
    compared = {name: values.astype(float) for name, values in beside.items()}
    return found.assign(why=found.why.where(found.number.isna() & (found.why != ""), ""), **compared)


def at_last(lines: DataFrame) -> DataFrame:
    """The rows of the last layer of each cell."""
    return lines[lines.layer == lines.groupby("key").layer.transform("max")]


def by_cell(lines: DataFrame, number: Callable[[Line], tuple[float | None, str]]) -> DataFrame:
    """`number` of the values by layer of each cell, up to the first layer that has none: what is not found before has that layer's
    reason."""
    import pandas as pd

    lines = lines.sort_values(["key", "layer"])
    reasons = lines.value_reason.fillna("").tolist() if "value_reason" in lines else [""] * len(lines)
    rows = zip(lines.key.tolist(), lines.layer.tolist(), lines.value.astype(float).tolist(), reasons)
    found = []
    for key, part in itertools.groupby(rows, key=lambda row: row[0]):
        line = [(layer, value, reason) for _, layer, value, reason in part]
        clear = list(itertools.takewhile(lambda one: not math.isnan(one[1]), line))
        value, why = number([(layer, value) for layer, value, _ in clear]) if clear else (None, "")
        if len(clear) < len(line) and (value is None or number is last) and why != EQUAL:
            layer, _, reason = line[len(clear)]
            value, why = None, f"from layer {layer} on there is no residual" + (f": {reason}" if reason else "")
        found.append((key, value, why))
    return pd.DataFrame(found, columns=["key", "number", "why"]).astype({"number": float})


@dataclass(frozen=True)
class OfCells:
    """`rows` of a table, without those of networks that are not done; the `number` of each network's."""

    rows: Callable[[Any], Any]
    number: Callable[[Any], Any]


OF_CELLS = {
    "residual_last": OfCells(residuals, residual_last),
    "log_residual": OfCells(law, log_residual),
    "halving_depth": OfCells(residuals, halving_depth),
    "depth_below_tenth": OfCells(residuals, depth_below_tenth),
    "short_paths": OfCells(short, short_paths),
    "probe_accuracy": OfCells(longest_trained, probe_accuracy),
    "kept": OfCells(longer, kept),
    "null_dimension": OfCells(free, null_dimension),
    "identity_rate": OfCells(found_again, identity_rate),
    "own_share": OfCells(own, own_share),
    "accuracy": OfCells(cells, accuracy),
    "over_chance": OfCells(cells, over_chance),
    "step_ms": OfCells(cells, step_ms),
}
