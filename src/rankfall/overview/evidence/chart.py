"""What the page draws of it."""

from rankfall.report.page.chart import Chart

CHARTS = (
    Chart(
        "evidence",
        "What decides a claim",
        "The numbers that the experiment of a claim has measured. Choose the claim and the quantity, whose name says what is on both axes.",
        "x",
        "value",
        "what the quantity is by",
        "value",
        line="line",
        choose=("claim", "quantity"),
        named_by="quantity",
        scale="wide",
        study="claims",
        place=10,
    ),
)
