"""Declare the table `gradients` and what is shown of it: norms of the loss's gradient by layer."""

from rankfall.report.lines import POSITIVE
from rankfall.report.page.chart import NETWORK, Chart
from rankfall.report.schema import Table, declare_table


def columns() -> Table:
    return declare_table(
        "gradients",
        "each cell, layer and variable that the gradient is by",
        """
        layer int 1..depth: 1 is the first block
        of text: queries, keys, values: the weights of the attention that make them, without biases; input: the state that enters the layer
        value float?: queries, keys, values: Frobenius norm of the gradient of the mean loss over the samples; input: root mean square
            over samples of the Frobenius norm of the gradient of B times a sample's part of it, so that no norm depends on how many samples
            B there are; null: see value_reason
        entries int?: numbers that the gradient has: value / sqrt(entries) is one entry's
        floor bool?: the gradient is rounding noise of float64: a second pass whose states are changed by 4 units on their way changes
            it by more than a tenth; null: no value
        loss float?: mean loss over the samples; null: not finite
        samples int: test samples that the loss is over
        value_reason text: why there is no value; else empty
        """,
        key="layer of",
    )


CHARTS = (
    Chart(
        "gradients",
        "Gradients of the loss by layer",
        "Norm of the gradient by the weights of queries, keys and values, and by the state that enters the layer. Where tokens are alike, "
        "scores cannot matter: gradients of queries and keys vanish before those of values do.",
        "layer",
        "value",
        "layer",
        "norm of the gradient",
        choose=(*NETWORK, "of"),
        start={"of": "queries"},
        within=POSITIVE,
        scale="log",
        place=17,
    ),
)
