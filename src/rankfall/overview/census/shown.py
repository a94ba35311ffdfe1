"""Declare the table `census` and what is shown of it: a row, a chart and a sentence about the model types of the transformers library."""

from rankfall.census.outcomes import MEASURED, NOT_ELIGIBLE
from rankfall.overview.census_columns import CHANGES, COST, OF_STREAM, OF_TYPE
from rankfall.report.page.chart import POSITIVE, Chart
from rankfall.report.page.question import Read, TableQuestion
from rankfall.report.schema import Column, Table, declare_columns, declare_table

NUMBERS = (
    *declare_columns(
        """
        residual_first float?: relative residual of the state that enters the first layer
        residual_last float?: and of the last
        floor float?: a residual below is rounding
        kept float?: residual_last over residual_first
        """
    ),
    *(Column(f"kept_{name}", "float", f"kept with {change}", nullable=True) for name, change in CHANGES.items()),
    *declare_columns(
        """
        residual_san float?: of the last state without skips and branches that mix no tokens
        residual_san_mlp float?: without skips of what mixes tokens
        residual_san_skip float?: without branches that mix no tokens
        residual_san_bare_mlp float?: without any skip
        norm_growth float?: norm of the last state over that of the first
        effective_rank float?: of the last state
        order float?: order of contraction, median over layers
        order_least float?: the smallest of a layer
        order_most float?: the largest of a layer
        mixing_ratio float?: size of what mixes tokens over that of the state, median over layers
        tokenwise_ratio float?: the same of what mixes none
        entropy float? [nats]: of a row of attention, mean over layers
        gradient float?: of the first state, relative to that of the last
        query_gradient float?: of queries, in the first layer that has one
        influence_first float?: of the first token on the last state, from the first state
        influence_middle float?: of the middle token
        influence_last float?: of the last token
        """
    ),
)


def columns() -> Table:
    """Declare the table of model types. For a type with several streams it has the stream with the most layers; `census_layers` has
    all."""
    return declare_table(
        "census",
        "each model type",
        OF_TYPE,
        OF_STREAM,
        NUMBERS,
        COST,
        key="type",
        cells=False,
    )


CHARTS = (
    Chart(
        "census",
        "What kinds of models keep at initialisation",
        "Residual of the last state over that of the first, mean over the model types of the transformers library whose norms stand there "
        "and that have this mask.",
        "mask",
        "norm_place",
        "mask",
        "norms",
        kind="grid",
        line="norm_place",
        choose=("mixer",),
        start={"mixer": "attention"},
        value="kept",
        value_title="kept of the residual",
        within=POSITIVE,
        better="high",
        place=74,
        study="rank",
    ),
)


LOST = 0.1  # residual of the last state below which the sentence counts a type


def say_census(read: Read) -> tuple[str, str]:
    """Write how much of the residual the measured types keep."""
    table = read("census")
    if table is None:
        return "", ""
    eligible = table[~table.outcome.isin(NOT_ELIGIBLE)]
    measured = eligible[(eligible.outcome == MEASURED) & eligible.kept.notna()]
    if not len(measured):
        return "", ""
    lost = int((measured.residual_last < LOST).sum())
    return (
        f"Of {len(measured)} measured model types of transformers, half keep more than {measured.kept.median():.2f} of the residual that "
        f"enters; {lost} end below {LOST:g}.",
        "",
    )


SENTENCES = (TableQuestion("What do known architectures keep at birth?", say_census, study="rank", place=75),)
