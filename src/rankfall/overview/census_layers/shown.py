"""Declare the table `census_layers` and its chart: every model type of the transformers library at initialisation, layer by layer."""

from rankfall.overview.census_columns import CHANGES, COST, OF_STREAM, OF_TYPE
from rankfall.report.page.chart import POSITIVE, Chart
from rankfall.report.schema import Column, Table, declare_table


def columns() -> Table:
    """Declare the table of model types by layer."""
    return declare_table(
        "census_layers",
        "each model type, size, stream and layer; a type that is not measured has a single row",
        OF_TYPE,
        OF_STREAM,
        """
        layer int?: 0 is the state that enters the first layer; null: not measured
        name text?: name of the layer's module
        parts text?: its branches, and what each does
        residual float?: relative residual (composite norm), mean over samples
        floor float?: a residual below is rounding
        residual_san float?: without skips and without branches that mix no tokens
        residual_san_mlp float?: without skips of what mixes tokens
        residual_san_skip float?: without branches that mix no tokens
        residual_san_bare_mlp float?: without any skip
        """,
        (Column(f"residual_{name}", "float", f"with {change}", nullable=True) for name, change in CHANGES.items()),
        """
        norm_of_state float?: of a token's vector, root of the mean square
        effective_rank float?: exp of the entropy of the singular values
        distinct int?: different rows of equal tokens, as `rankfall check` counts them
        order float?: order of contraction of what mixes tokens in the layer, the largest
        orders text?: of each branch that mixes tokens
        mixing_ratio float?: size of what mixes tokens over that of the state
        tokenwise_ratio float?: size of what mixes none over that of the state
        entropy float? [nats]: of a row of attention
        first_share float?: attention on the first token
        gradient float?: of this state, relative to that of the last
        query_gradient float?: of queries
        key_gradient float?: of keys
        influence_first float?: of the first token's row on the last state
        influence_middle float?: of the middle token's row
        influence_last float?: of the last token's row
        """,
        COST,
        key="type size stream layer",
        cells=False,
    )


CHARTS = (
    Chart(
        "census_type",
        "Residual by layer of a model type at initialisation",
        "Each model type of the transformers library as the library initialises it, small: what is left of the differences between tokens.",
        "layer",
        "residual",
        "layer",
        "relative residual",
        line="stream",
        choose=("type",),
        start={"type": "bert"},
        within=POSITIVE,
        place=75,
        study="rank",
    ),
)
