"""Headline number: the residual at the last layer without a rounding floor."""

from rankfall.annotations import DataFrame
from rankfall.rank.law.rows import has_no_residual
from rankfall.report.cell_numbers import all_rows, at_last
from rankfall.report.headlines import Headline


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
