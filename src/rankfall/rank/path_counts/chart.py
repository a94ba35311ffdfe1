"""Chart of the number of paths by length for the page."""

from rankfall.report.page.chart import SHARE, Chart

CHARTS = (
    Chart(
        "path_counts",
        "How many paths have which length",
        "Counted from a model's number of layers and heads alone: share of all its paths.",
        "length",
        "proportion",
        "layers that a path goes through",
        "share of all paths",
        line="model",
        choose=(),
        within=SHARE,
        place=60,
    ),
)
