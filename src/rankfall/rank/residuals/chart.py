"""Chart of the residual by layer for the page."""

from rankfall.rank.residuals.rows import RESIDUAL
from rankfall.report.page.chart import POSITIVE, Chart

TALL = "residual (1: nothing in common, 0: all equal)"
CHARTS = (
    Chart(
        "residual",
        "Residual by layer",
        "How different the tokens still are: what is left of their vectors without their mean, as a share. About 1: they have nothing in "
        "common; 0: all are one vector. A line that falls is an architecture that collapses.",
        "layer",
        "value",
        "layer",
        TALL,
        where=RESIDUAL,
        within=POSITIVE,
        opening=True,
        place=10,
    ),
)
