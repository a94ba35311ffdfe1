"""Sentences on which architecture of a setting collapses fastest: by the order of its block, or else by the residual that is left."""

from collections.abc import Callable
from functools import partial

from rankfall.annotations import DataFrame
from rankfall.rank.residuals.shown import STILL
from rankfall.report.headlines import Headline, by_name
from rankfall.report.labels import write_float
from rankfall.report.page.question import Question, fit, list_names, name, say_range
from rankfall.report.settings import Setting
from rankfall.report.style import power

NEAR = 0.1  # orders that differ by less count as equal
KEEPS = 0.5  # residual at the last layer from which on tokens count as kept apart
PER_LAYER = {
    3: ": every layer cubes a small residual",
    1: ": every layer shrinks it by a factor",
    0: ": a small residual does not vanish",
}
KNOWN = ("residual_last", "log_residual")


def say_fastest(rows: DataFrame, setting: Setting) -> str:
    """Write which blocks have the highest order, or which residual is smallest if orders decide nothing: if all are alike, or if a row
    without an order has a smaller residual than all rows of the highest order. Its order may be even higher."""
    known = rows[rows.residual_last.notna() | rows.log_residual.notna()]
    ordered = known[known.block_order.notna()]
    first = ordered[ordered.block_order > ordered.block_order.max() - NEAR]
    column = choose_number(known).name
    least = known[known.block_order.isna()][column].astype(float).min()
    if len(first) == len(ordered) or least < first[column].astype(float).min():
        return say_smallest(known, setting)
    order = float(first.block_order.max())
    does = PER_LAYER.get(round(order), "") if abs(order - round(order)) < NEAR else ""
    of = len(ordered) if len(ordered) == len(known) else f"the {len(ordered)} whose order is known"
    names = list_names([name(row) for _, row in first.iterrows()])
    return fit(f"fastest of {of}: {names} (order {round(order, 2) + 0.0:.2g}{does})", say_kept(rows))


def say_smallest(rows: DataFrame, setting: Setting) -> str:
    """Write which architectures are left with the largest and with the smallest residual."""
    headline = choose_number(rows)
    text = "the residual at the last layer is largest in"
    return say_range(rows, setting, number=headline.name, text=text, write=choose_words(headline), more=say_kept(rows))


def choose_number(rows: DataFrame) -> Headline:
    """Return the number by which residuals are compared.

    This is the residual at the last layer, as in the scorecard. If rounding of float64 hides it and all rows have a law, it is the law,
    which uses other samples and another mean.
    """
    hidden = rows.residual_last.isna() | (rows.residual_last_floor.astype(float) > 0)
    return by_name("log_residual" if hidden.any() and rows.log_residual.notna().all() else "residual_last")


def choose_words(headline: Headline) -> Callable[[float], str]:
    """Return the function that writes a residual."""
    return power if headline.unit == "log10" else partial(write_float, digits=headline.digits)


def say_kept(rows: DataFrame) -> str:
    """Write how many of the architectures with a residual at the last layer keep their tokens apart."""
    known = rows.residual_last[rows.residual_last.notna()]
    return f"; {int((known >= KEEPS).sum())} of {len(known)} keep at least {KEEPS}" if len(known) > 1 else ""


def say_tenth(rows: DataFrame, setting: Setting) -> str:
    """Write in which architectures the residual falls below a tenth last and first, and how many stay above it."""
    asked = rows[rows.depth_below_tenth_of.notna()]
    above = int(asked.depth_below_tenth_reason.str.contains(STILL, regex=False).sum())
    stay = f"{above} of {len(asked)} stay above it in at least one seed"
    said = say_range(
        asked,
        setting,
        number="depth_below_tenth",
        text="the residual falls below 0.1 after most layers in",
        write=lambda layers: f"{layers:.1f}".removesuffix(".0"),
        more=f"; {stay}" * (above > 0),
    )
    return said or fit(stay.replace("it", "0.1")) * (above > 0)


SENTENCES = (
    Question("Which architecture collapses fastest?", KNOWN, say_fastest, place=10),
    Question("At which layer does the residual fall below 0.1?", ("depth_below_tenth",), say_tenth, place=30),
)
