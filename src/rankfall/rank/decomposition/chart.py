"""Chart of the output by the length of paths for the page."""

from rankfall.rank.decomposition.rows import PATHS
from rankfall.report.page.chart import Chart

CHARTS = (
    Chart(
        "decomposition",
        "Output by the length of paths",
        "A network's output is a sum over all its paths, which is exact for networks of attention and skip connections. Share of the "
        "output that the paths of each length make; shares can be negative and add up to 1 with that of the biases.",
        "length",
        "output_share",
        "layers that a path goes through",
        "share of the output",
        where=PATHS,
        start={"training": "converged"},
        place=50,
    ),
)
