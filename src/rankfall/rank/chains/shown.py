"""Declare the table `chains` and what is shown of it: products of attention matrices along random paths of a model.

The figure: products of attention matrices along random paths: distance from rank one against the number of matrices.
"""

import numpy as np

from rankfall.annotations import DataFrame, Read
from rankfall.report.labels import name_measurements, select_models
from rankfall.report.lines import MIDDLE_HALF, POSITIVE, legend_below, lines, steps
from rankfall.report.page.chart import MODEL, Chart
from rankfall.report.published_numbers import read_published
from rankfall.report.schema import MODEL_COLUMNS, Table, declare_table
from rankfall.report.style import Picture


def columns() -> Table:
    return declare_table(
        "chains",
        "each model, phase, seed, chain length and repeat",
        MODEL_COLUMNS,
        """
        chain int [layers]: matrices in the product, one a layer
        repeat int: number of the random path
        sample int: which text of the batch
        residual float?: what the best rank-one part leaves of the product, relative, composite norm; null: see value_reason
        from_mean float?: what equal rows leave of it: relative residual from the mean row
        floor bool: the residual is rounding noise
        value_reason text?: why there is none: weights that are not finite, zero, or beyond the range of float64; else empty
        """,
        key="model revision phase text length dtype seed chain repeat",
        cells=False,
    )


CHARTS = (
    Chart(
        "chains",
        "Products of a model's attention matrices",
        "One attention matrix from each of so many layers, multiplied: how far the product is from a matrix of rank 1, which gives all "
        "tokens the same. Mean over random paths.",
        "chain",
        "residual",
        "matrices in the product",
        "residual of rank 1",
        line="phase",
        choose=tuple(name for name in MODEL if name != "phase"),
        scale="log",
        within=POSITIVE,
        place=90,
    ),
)


DATA = ["rank/chains/published.csv"]
PUBLISHED = read_published(__file__)


def figure(read: Read, *, models: list[str] | None = None) -> Picture:
    """Draw the median over paths with the middle half as a band. Values that are rounding noise are left out."""
    table = select_models(read("chains"), "chains", models)
    shown = table.assign(line=name_measurements(table))[~table.floor]
    grid = lines(
        shown, "chain", "residual", "line", steps(sorted(shown.line.unique())), height=2.6, log="y",
        estimator="median", errorbar=MIDDLE_HALF,
    )  # fmt: skip
    grid.set(xlabel="matrices in the product", ylabel="relative residual from rank one")
    grid.set(xticks=sorted(shown.chain.unique()))
    legend_below(grid)
    points = shown.groupby(["line", "chain"]).residual.describe(percentiles=[0.25, 0.5, 0.75]).reset_index()
    noise = int(table.floor.sum())
    left_out = f" ({noise} values are left out as rounding noise of float64)" if noise else ""
    caption = (
        "Products of attention matrices of whole models along random paths, one random head in each of the chosen layers: "
        "median and middle "
        f"half over paths of what the best rank-one part leaves{left_out}. "
    )
    return Picture(grid.figure, caption + describe_finding(points), points)


def describe_finding(points: DataFrame) -> str:
    """Write the factor by which a further matrix multiplies the median, from a straight line through its logarithm."""
    lines = [(name, line) for name, line in points.groupby("line") if len(line) > 1]
    paces = {name: np.exp(np.polyfit(line.chain, np.log(line["50%"]), 1)[0]) for name, line in lines}
    factors = ", ".join(f"{pace:.2g} ({name})" for name, pace in paces.items())
    return f"Each further matrix multiplies it by {factors}." if factors else "No line has two lengths."
