"""Declare what is shown of `law`: headline numbers, charts, sentences, published numbers and selections of its rows."""

from collections.abc import Iterable

from rankfall.annotations import DataFrame, Series
from rankfall.report.cell_numbers import all_rows, at_last
from rankfall.report.headlines import Headline
from rankfall.report.labels import many
from rankfall.report.page.chart import Chart
from rankfall.report.page.question import Question, say_range
from rankfall.report.published_numbers import read_published
from rankfall.report.selection import SPECS
from rankfall.report.settings import Setting
from rankfall.report.style import power


def has_no_residual(table: DataFrame) -> Series:
    """Check whether a row of the law has no residual, because all its vectors are equal or zero, or because it is rounding noise."""
    return table.log10_residual.isna() | table.floor.fillna(False).astype(bool)


def clear(table: DataFrame, by: Iterable[str] = SPECS) -> Series:
    """Check whether a row of the law comes before the first layer at which a row of its group lacks a residual.

    A mean over the remaining rows of a group would be over other networks than the point before it. A group is all seeds and samples,
    unless `by` adds more columns.
    """
    groups = [table[name] for name in by if name in table]
    first = table.layer.where(has_no_residual(table)).groupby(groups, dropna=False).transform("min")
    return ~(table.layer >= first).fillna(False).astype(bool)


def beyond_range(rows: DataFrame) -> dict[str, str]:
    """Return the networks whose state leaves the range of float64 in a sample, with the layer. This is neither rounding nor 0."""
    if "value_reason" not in rows:
        return {}
    gone = rows[rows.log10_residual.isna() & rows.value_reason.fillna("").str.startswith("the state")]
    first = gone.sort_values("layer").groupby("key")[["layer", "value_reason"]].first()
    return {key: f"from layer {row.layer} on there is none: {row.value_reason}" for key, row in first.iterrows()}


def log_residual(rows: DataFrame) -> DataFrame:
    """Return the numbers, without those from the first layer at which a sample's rows are identical to the last digit or rounding noise."""
    last = at_last(rows).groupby("key").log10_residual.mean()
    gone = rows[has_no_residual(rows)].groupby("key").layer.min().astype(float)
    found = last.where(~last.index.isin(gone.index)).rename("number").to_frame().join(gone.rename("gone"))
    said = beyond_range(rows)
    why = [
        "" if missing != missing else said.get(key) or f"at layer {missing:.0f} it is rounding noise, or 0"
        for key, missing in found.gone.items()
    ]
    return found.assign(why=why).reset_index()[["key", "number", "why"]]


HEADLINES = (
    Headline(
        "log_residual",
        "residual without rounding (log10)",
        "log10 of the relative residual after the last block, by centred propagation, which has no rounding floor, or by float64 where "
        "that is above its floor; mean over samples",
        ("layer", "sample", "method", "log10_residual", "floor"),
        all_rows,
        log_residual,
        unit="log10",
        digits=1,
        place=30,
    ),
)


CHARTS = (
    Chart(
        "law",
        "Residual without a rounding floor",
        "Computed without rounding, so that it can be followed far below what numbers of a computer resolve. Where the exponent grows by "
        "the same factor in every layer, collapse is doubly exponential; where it grows by the same amount, exponential. A "
        "line ends where that cannot be done and what is left is rounding noise.",
        "layer",
        "log10_residual",
        "layer",
        "residual, as a power of ten",
        derive={"clear": clear},
        where={"clear": True},
        scale="symlog",
        opening=True,
        place=20,
    ),
)


def say_law(rows: DataFrame, setting: Setting) -> str:
    text = f"after {many(setting.depth, 'layer')} the residual (geometric mean over samples) is largest in"
    return say_range(rows, setting, number="log_residual", text=text, write=power)


SENTENCES = (Question("How small does the residual become?", ("log_residual",), say_law, place=60),)


DATA = ["rank/law/published.csv"]
PUBLISHED = read_published(__file__)
