"""Chart of the size and direction of states for the page."""

from rankfall.report.page.chart import NETWORK, Chart

CHARTS = (
    Chart(
        "states",
        "Size and direction of states by layer",
        "How large the states are, how parallel their tokens, and over how many directions they spread; also without the first token and "
        "without the largest channels. A cosine near 1 and a stable rank near 1 mean that tokens have become alike.",
        "layer",
        "value",
        "layer",
        "value",
        choose=(*NETWORK, "quantity", "left_out"),
        named_by="quantity",
        start={"quantity": "cosine", "left_out": "nothing"},
        place=15,
    ),
)
