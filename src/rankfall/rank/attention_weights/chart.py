"""Chart of the concentration of attention weights for the page."""

from rankfall.rank.attention_weights.rows import of_layer
from rankfall.report.page.chart import NETWORK, POSITIVE, Chart

CHARTS = (
    Chart(
        "attention_weights",
        "How concentrated attention weights are",
        "Mean over heads and rows. Entropy: 0 where a token attends to one token, the logarithm of their number where to all alike; the "
        "inverse participation ratio is 1 and one over their number. The share of the first token shows attention that goes nowhere else.",
        "layer",
        "value",
        "layer",
        "value",
        choose=(*NETWORK, "quantity", "left_out"),
        derive={"whole": of_layer},
        where={"whole": True},
        named_by="quantity",
        start={"quantity": "entropy", "left_out": "nothing"},
        within=POSITIVE,
        place=16,
    ),
)
