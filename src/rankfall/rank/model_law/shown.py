"""Declare the table `model_law` and what is shown of it: residuals of real models without a rounding floor, and the one-layer bound on
their weights.

The figure: the law of rank collapse on real weights: log10 of -log10 residual against layer, where a cubic law is a line of slope log10 3.
"""

import numpy as np

from rankfall.annotations import Axes, DataFrame, Read
from rankfall.errors import RankfallError
from rankfall.rank.law.figure import label_towers, twice
from rankfall.rank.law.shown import ONE_LAYER, size
from rankfall.rank.models import VARIANTS
from rankfall.report.captions import describe_lines, describe_missing
from rankfall.report.colours import colours
from rankfall.report.labels import join
from rankfall.report.lines import legend_below, lines
from rankfall.report.looks import label
from rankfall.report.model_names import name_measurements
from rankfall.report.page.chart import MODEL, Chart
from rankfall.report.schema import MODEL_COLUMNS, Column, Table
from rankfall.report.style import Picture, power


def columns() -> Table:
    """Declare the table: one row per state."""
    return Table(
        "model_law",
        "a model x phase x seed x variant x layer x sample",
        (
            *MODEL_COLUMNS,
            Column("variant", "text", "what is left of every block: see docs/models.md"),
            Column("layer", "int", "0 is the state that enters the first layer"),
            Column("sample", "int", "which text of the batch"),
            size("log10_residual", "|res(X)|/|X|, composite norm, token mean, without a floor; null: see value_reason"),
            Column(
                "value_reason",
                "text",
                "why there is no log10_residual: rows identical to the last digit, or a state beyond the range of float64; else empty",
                nullable=True,
            ),
            Column(
                "direct",
                "float",
                "the same, not its log, computed in the ordinary way in float64; null: the state is beyond its range",
                nullable=True,
            ),
            size("exponent", "of the layer below: d log res out / d log res in; 3 where the cubic law holds", ""),
            size(
                "log10_attention", "|res(SA(X_l-1))|, what the layer below leaves before its norm: left of every bound"
            ),
            Column("theory_applies", "bool", "whether there is a layer below whose attention the lemma speaks of"),
            Column(
                "theory_reason", "text", "why not, or that its condition fails, so that bounds are null; else empty"
            ),
            *ONE_LAYER,
        ),
        key=("model", "revision", "phase", "text", "length", "variant", "seed", "layer", "sample"),
        cells=False,
    )


CHARTS = (
    Chart(
        "model_law",
        "Residual of real models without a rounding floor",
        "The same, computed without rounding: models without skip connections lose rank within a few layers.",
        "layer",
        "log10_residual",
        "layer",
        "residual, as a power of ten",
        line="variant",
        choose=MODEL,
        start={"model": "bert-base-cased", "definition": "clean"},
        scale="symlog",
        place=80,
    ),
)


TABLES = ["model_law"]
FLOORS = {"float64": 16, "float32": 7}  # approximate decimal digits


def figure(read: Read, *, variants: list[str] = []) -> Picture:
    """Draw medians over seeds and samples, with the values of an ordinary float64 pass, which stay at their floor.

    `variants`: which ones, in order; by default all that were measured.
    """
    table = read("model_law")
    variants = variants or [name for name in VARIANTS if name in set(table.variant)]
    table = table[table.variant.isin(variants)]
    if table.empty:
        raise RankfallError(
            "figure model_law: nothing was measured: no model of the run has these variants and layers that the law can be computed for"
        )
    table = table.assign(panel=name_measurements(table), direct=np.log10(table.direct.clip(lower=1e-300)))
    points = (
        table.groupby(["panel", "variant", "layer"])[["log10_residual", "direct", "exponent"]].median().reset_index()
    )
    long = points.melt(["panel", "variant", "layer"], ["log10_residual", "direct"], "pass", "log10")
    long = long[long.log10.notna() & ((long["pass"] != "direct") | (long.log10 > -299))]
    long = long.assign(height=twice(long.log10.astype(float)))
    names = sorted(points.panel.unique())
    grid = lines(
        long, "layer", "height", "variant", colours(variants), col="panel", col_order=names, col_wrap=3,
        height=2.3, errorbar=None, shared=(False, True),
        style="pass", style_order=["log10_residual", "direct"], dashes={"log10_residual": "", "direct": (1, 1.5)},
    )  # fmt: skip
    for name, panel in grid.axes_dict.items():
        slope(panel, points[points.panel == name])
        for digits in FLOORS.values():
            panel.axhline(np.log10(digits), color="#bbbbbb", linewidth=0.8, label="ends of float32 and float64")
    label_towers(list(grid.axes.flat), float(long.log10.min()))
    for panel in grid.axes[:, 0] if grid.axes.ndim > 1 else grid.axes[:1]:
        panel.set_ylabel("residual |res(X)| / |X|")
    legend_below(grid, 4, skip=("variant", "pass", "log10_residual", "direct"))
    known = table[table.log10_residual.notna()]
    by = ["panel", "variant"]
    caption = (
        f"Residuals of real models: {describe_lines(known.assign(seed=known.seed.fillna(-1)), by, band='', mean='medians')} and samples. "
        "Solid: without a rounding floor. Dotted: an ordinary float64 pass, which ends at its floor (grey, across). On this axis, "
        "log10(-log10 residual), a cubic law has the grey slope. "
    )
    return Picture(
        grid.figure, caption + describe_finding(points) + describe_missing(table, by, "log10_residual"), points
    )


def describe_finding(points: DataFrame) -> str:
    """Write the residual of each variant at the last layer of its model, and the local exponent of the lowest once it is below 0.01."""
    said = []
    for name, part in points.groupby("panel"):
        last = part[part.layer == part.layer.max()].dropna(subset="log10_residual").sort_values("log10_residual")
        ends = join(f"{power(float(one.log10_residual))} ({label(one.variant)})" for one in last.itertuples())
        lowest = part[(part.variant == last.variant.iloc[0]) & (part.log10_residual < -2)]
        pace = lowest.exponent.astype(float).median()
        exponent = f"; each layer takes the lowest to its power {pace:.2f}" if pace == pace else ""
        said.append(f"{name}, layer {last.layer.iloc[0]}: {ends}{exponent}")
    return f"{'. '.join(said)}."


def slope(panel: Axes, points: DataFrame) -> None:
    """Draw a line of slope log10 3 through the last point of the lowest curve."""
    ends = points[points.layer == points.layer.max()].log10_residual.astype(float)
    if ends.empty or not ends.min() < -1:
        return
    end, top = int(points.layer.max()), float(np.log10(-ends.min()))
    start = max(0, end - 3)
    panel.plot(
        [start, end],
        [top - (end - start) * np.log10(3) + 0.4, top + 0.4],
        color="#888888",
        linewidth=1.0,
        label="slope of a cubic law",
    )
