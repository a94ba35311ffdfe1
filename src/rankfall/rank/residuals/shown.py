"""Declare what is shown of `residuals`: headline numbers, charts and selections of its rows."""

import itertools
import math
from functools import partial

from rankfall.annotations import DataFrame
from rankfall.report.cell_numbers import EQUAL, NOTHING, Line, at_last, by_cell
from rankfall.report.headlines import Headline
from rankfall.report.lines import POSITIVE
from rankfall.report.page.chart import Chart
from rankfall.report.selection import select

STATES = {"place": "state"}
BY_DEFAULT = {"matrix_norm": "composite", "centre": "mean"}  # about the mean of the tokens; mean over samples
RESIDUAL = {**STATES, **BY_DEFAULT, "quantity": "residual"}


TENTH, HALF = 0.1, 0.5
STILL = "it is still"  # only in the reason of a line that does not fall so far


def residual_last(rows: DataFrame) -> DataFrame:
    floors = at_last(rows).groupby("key").floor_share.mean()
    found = by_cell(rows, find_last, whole=True)
    return found.assign(floor=found.key.map(floors).astype(float))


def find_last(line: Line) -> tuple[float | None, str]:
    return (None, EQUAL) if line[0][1] < NOTHING else (line[-1][1], "")


def find_half(line: Line) -> tuple[float | None, str]:
    """Return the depth at which the residual halves, interpolated linearly in its logarithm between layers, or the reason."""
    start = line[0][1]
    if start < NOTHING:
        return None, EQUAL
    for (layer, before), (_, value) in itertools.pairwise(line):
        if value <= start * HALF:
            if value <= 0:
                return float(layer) + 1, ""
            return float(layer) + math.log(before / (start * HALF)) / math.log(before / value), ""
    return None, f"at layer {line[-1][0]} {STILL} {line[-1][1] / start:.2f} of the embedding's"


def find_tenth(line: Line) -> tuple[float | None, str]:
    if line[0][1] < NOTHING:
        return None, EQUAL
    below = next((layer for layer, value in line if value < TENTH), None)
    return (None, f"at layer {line[-1][0]} {STILL} {line[-1][1]:.2f}") if below is None else (float(below), "")


def residual(table: DataFrame) -> DataFrame:
    return select(table, RESIDUAL)


HEADLINES = (
    Headline(
        "residual_last",
        "residual at the last layer",
        "|X - mean of the tokens| / |X| after the last block: 0 where all tokens are one vector, about 1 where they have nothing in common",
        ("value",),
        residual,
        residual_last,
        digits=3,
        scale="log",
        beside={"floor": "share of the samples whose residual is rounding noise of float64"},
        place=20,
    ),
    Headline(
        "halving_depth",
        "depth that halves the residual",
        "number of blocks after which the residual is half of the embedding's, interpolated between layers in the logarithm",
        ("layer", "value"),
        residual,
        partial(by_cell, number=find_half),
        unit="layers",
        place=40,
    ),
    Headline(
        "depth_below_tenth",
        "first layer with a residual below 0.1",
        "the first layer after which the residual is below 0.1",
        ("layer", "value"),
        residual,
        partial(by_cell, number=find_tenth),
        unit="layers",
        digits=1,
        place=50,
    ),
)


TALL = "residual (1: nothing in common, 0: all equal)"
CHARTS = (
    Chart(
        "residual",
        "Residual by layer",
        "How different the tokens still are: what is left of their vectors without their mean, as a share. About 1: they have nothing in "
        "common; 0: all are one vector. A line that falls is an architecture that collapses.",
        "layer",
        "value",
        "layer",
        TALL,
        where=RESIDUAL,
        scale="log",
        within=POSITIVE,
        opening=True,
        place=10,
    ),
)
