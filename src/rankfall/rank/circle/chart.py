"""Chart of the distance of two points on the circle for the page."""

from rankfall.report.page.chart import POSITIVE, Chart

CHARTS = (
    Chart(
        "circle",
        "Two points on a circle, moved again and again",
        "A network has learned to move points along a circle by a step, and is applied to its own output. Distance of two points that "
        "start opposite to each other: 0 where they have become one.",
        "step",
        "distance",
        "applications of the network",
        "distance of the two points",
        within=POSITIVE,
        place=100,
    ),
)
