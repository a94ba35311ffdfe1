"""Declare what is shown of `gradients`: charts."""

from rankfall.report.lines import POSITIVE
from rankfall.report.page.chart import NETWORK, Chart

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
