"""Chart of the learned terms by offset for the page."""

from rankfall.report.page.chart import NETWORK, Chart

CHARTS = (
    Chart(
        "offsets",
        "What is learned about each offset",
        "B: what the position encoding adds to the score of a token so many places before (right) or after (left); C: what the normaliser "
        "urpe multiplies its weight by.",
        "offset",
        "value",
        "offset: place of the token that looks, less that of the one looked at",
        "what is added or multiplied by",
        choose=(*NETWORK, "which", "layer", "of_head"),
        start={"which": "B", "of_head": 1},
        place=40,
    ),
)
