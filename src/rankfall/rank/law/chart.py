"""Chart of the residual without a rounding floor for the page."""

from rankfall.rank.law.rows import clear
from rankfall.report.page.chart import Chart

CHARTS = (
    Chart(
        "law",
        "Residual without a rounding floor",
        "Computed without rounding, so that it can be followed far below what numbers of a computer resolve. Where the exponent grows by "
        "the same factor in every layer, collapse is doubly exponential; where it grows by the same amount, exponential. A "
        "line ends where that cannot be done and what is left is rounding noise.",
        "layer",
        "log10_residual",
        "layer",
        "residual, as a power of ten",
        derive={"clear": clear},
        where={"clear": True},
        scale="symlog",
        opening=True,
        place=20,
    ),
)
