"""Declare the tables `residuals` and `model_residuals` and what is shown of them: distance of each layer's states from rank one, in
networks and in real models."""

import itertools
import math
from functools import partial

from rankfall.annotations import DataFrame
from rankfall.rank.residuals.curves import curves
from rankfall.report.headlines import EQUAL, NOTHING, Headline, Line, at_last, by_cell, by_name
from rankfall.report.labels import write_float
from rankfall.report.lines import POSITIVE
from rankfall.report.page.chart import MODEL, Chart
from rankfall.report.page.question import Question, fit, list_names, quote_name, say_range
from rankfall.report.published_numbers import read_published
from rankfall.report.schema import MODEL_COLUMNS, Table, declare_table
from rankfall.report.selection import select
from rankfall.report.settings import Setting
from rankfall.report.style import power


def columns() -> Table:
    return declare_table(
        "residuals",
        "each cell, layer, place, quantity, norm and centre",
        """
        layer int 0..depth: 0 is the embedding
        place text: state: after the block (or the embedding); before or after a norm of the block, which call if it is called again
        quantity text: residual: |res(X)|/|X|; absolute_residual: |res(X)|; sigma_ratio: sigma_2/sigma_1; stable_rank: |X|_F^2/|X|_2^2;
            numerical_rank: singular values above rounding
        matrix_norm text?: composite: sqrt(l1 linf), operator norms; null: spectral
        centre text?: mean of the tokens, or best: minimises the norm, exactly for l1 and frobenius, to 1% of the value for linf; for
            composite the best that a descent finds, never worse than the mean; null: spectral
        value float? 0..: mean over samples; null: see value_reason
        deviation float? 0..: standard deviation over samples (seeds are cells)
        floor_share float?: share of samples whose value is float64 rounding noise: below 16 units relative, or the matrix moves by more
            than a tenth in a second pass that moves states by 4 units on their way; null: has no floor, or no value
        value_reason text?: why there is no value: a state that is zero or beyond the range of float64, whose ratio is not 0 but
            unknown; else empty
        """,
        key="layer place quantity matrix_norm centre",
    )


STATES = {"place": "state"}
BY_DEFAULT = {"matrix_norm": "composite", "centre": "mean"}  # about the mean of the tokens; mean over samples
RESIDUAL = {**STATES, **BY_DEFAULT, "quantity": "residual"}


TENTH, HALF = 0.1, 0.5
STILL = "it is still"  # only in the reason of a line that does not fall so far


def residual_last(rows: DataFrame) -> DataFrame:
    floors = at_last(rows).groupby("key").floor_share.mean()
    numbers = by_cell(rows, lambda line: (None, EQUAL) if line[0][1] < NOTHING else (line[-1][1], ""), whole=True)
    return numbers.assign(floor=numbers.key.map(floors).astype(float))


def find_half(line: Line) -> tuple[float | None, str]:
    """Return the depth at which the residual halves, interpolated linearly in its logarithm between layers, or the reason."""
    start = line[0][1]
    if start < NOTHING:
        return None, EQUAL
    for (layer, before), (_, value) in itertools.pairwise(line):
        if value <= start * HALF:
            return layer + (math.log(before / (start * HALF)) / math.log(before / value) if value > 0 else 1.0), ""
    return None, f"at layer {line[-1][0]} {STILL} {line[-1][1] / start:.2f} of the embedding's"


def find_tenth(line: Line) -> tuple[float | None, str]:
    if line[0][1] < NOTHING:
        return None, EQUAL
    below = next((layer for layer, value in line if value < TENTH), None)
    return (None, f"at layer {line[-1][0]} {STILL} {line[-1][1]:.2f}") if below is None else (float(below), "")


residual = partial(select, where=RESIDUAL)

HEADLINES = (
    Headline(
        "residual_last",
        "residual at the last layer",
        "|X - mean of the tokens| / |X| after the last block: 0 where all tokens are one vector, about 1 where they have nothing in "
        "common; mean over test samples, 8 by default",
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
        "common; 0: all are one vector. A line that falls is an architecture that collapses. Means over test samples, "
        "8 by default.",
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


NEAR = 0.1  # orders that differ by less count as equal
KEEPS = 0.5  # residual at the last layer from which on tokens count as kept apart
PER_LAYER = {
    3: ": every layer cubes a small residual",
    1: ": every layer shrinks it by a factor",
    0: ": a small residual does not vanish",
}
ASKED_OF = ("residual_last", "log_residual")


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
    effect = PER_LAYER.get(round(order), "") if abs(order - round(order)) < NEAR else ""
    compared = len(ordered) if len(ordered) == len(known) else f"the {len(ordered)} whose order is known"
    names = list_names([quote_name(row) for _, row in first.iterrows()])
    return fit(f"fastest of {compared}: {names} (order {round(order, 2) + 0.0:.2g}{effect})", say_kept(rows))


def say_smallest(rows: DataFrame, setting: Setting) -> str:
    """Write which architectures are left with the largest and with the smallest residual."""
    headline = choose_number(rows)
    exact = headline.unit == "log10"
    text = f"the residual {'without rounding (geometric mean)' if exact else 'at the last layer'} is largest in"
    write = power if exact else partial(write_float, digits=headline.digits)
    return say_range(rows, setting, number=headline.name, text=text, write=write, more=say_kept(rows))


def choose_number(rows: DataFrame) -> Headline:
    """Return the number by which residuals are compared.

    This is the residual at the last layer, as in the scorecard. If rounding of float64 hides it and all rows have a law, it is the law,
    which uses other samples and another mean.
    """
    hidden = rows.residual_last.isna() | (rows.residual_last_floor.astype(float) > 0)
    return by_name("log_residual" if hidden.any() and rows.log_residual.notna().all() else "residual_last")


def say_kept(rows: DataFrame) -> str:
    """Write how many of the architectures with a residual at the last layer keep their tokens apart."""
    known = rows.residual_last[rows.residual_last.notna()]
    return f"; {int((known >= KEEPS).sum())} of {len(known)} keep at least {KEEPS}" if len(known) > 1 else ""


def say_tenth(rows: DataFrame, setting: Setting) -> str:
    """Write in which architectures the residual falls below a tenth last and first, and how many stay above it."""
    known = rows[rows.depth_below_tenth_of.notna()]
    above = int(known.depth_below_tenth_reason.str.contains(STILL, regex=False).sum())
    sentence = say_range(
        known,
        setting,
        number="depth_below_tenth",
        text="the residual takes most layers to fall below 0.1 in",
        write=lambda layers: f"{layers:.1f}".removesuffix(".0"),
        more=f"; in {above} of {len(known)} it stays above 0.1 in at least one seed" * (above > 0),
    )
    alone = (
        f"in {above} of {len(known)} architectures the residual stays above 0.1 in every layer, in at least one seed"
    )
    return sentence or fit(alone) * (above > 0)


SENTENCES = (
    Question("Which architecture collapses fastest?", ASKED_OF, say_fastest, place=10),
    Question("At which layer does the residual fall below 0.1?", ("depth_below_tenth",), say_tenth, place=30),
)


def model_columns() -> Table:
    """Declare the table `model_residuals`: one row per number."""
    return declare_table(
        "model_residuals",
        "each model, phase, definition, seed, variant, layer, sample, metric and centre",
        MODEL_COLUMNS,
        """
        variant text: what is left of every block: see docs/models.md
        layer int: 0 is the state that enters the first layer
        sample int: which text of the batch
        metric text: norm of the residual (composite, l1, linf, frobenius), or sigma_ratio, stable_rank; without_first, without_largest:
            composite, without the first token, or without the three channels of the largest mean square in the sample
        centre text: mean of the tokens, or none (spectra)
        value float?: residual over the norm of the whole state; for spectra the number itself; null: see value_reason
        absolute float?: the residual itself; null for stable_rank, and beyond the range of float64
        floor bool?: the value is rounding noise of `dtype`; null for stable_rank, or no value
        value_reason text?: why there is no value: a state that is not finite, zero, or beyond the range of `dtype`; else empty
        """,
        key="model revision phase definition text length dtype variant seed layer sample metric centre",
        cells=False,
    )


MODEL_RESIDUAL = {"metric": "composite", "centre": "mean"}


MODEL_CHARTS = (
    Chart(
        "models",
        "Residual by layer of real models",
        "Transformer: the model as it is; SAN: its attention alone, without skip connections and MLPs; SAN+skip and SAN+MLP: with these.",
        "layer",
        "value",
        "layer",
        TALL,
        line="variant",
        choose=MODEL,
        start={"model": "bert-base-cased", "definition": "clean"},
        where=MODEL_RESIDUAL,
        within=POSITIVE,
        opening=True,
        place=70,
    ),
)


DATA = ["rank/residuals/model_published.csv", "rank/residuals/rank_by_layer.csv"]
SINGLE = read_published(__file__, "model_published.csv")
MODEL_PUBLISHED = (*SINGLE, *curves(SINGLE))
