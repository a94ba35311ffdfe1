"""Chart of the accuracy kept on longer text for the page."""

from rankfall.position.extrapolation.rows import compute_kept_by_chance
from rankfall.report.page.chart import NETWORK, POSITIVE, Chart, Level

CHARTS = (
    Chart(
        "extrapolation",
        "Accuracy on longer text",
        "Accuracy of filling in masked tokens at a multiple of the trained length, as a share of that at the trained length.",
        "times",
        "kept",
        "length of the text, as a multiple of the trained length",
        "share of the accuracy kept",
        choose=NETWORK,
        within=POSITIVE,
        beside=(Level("chance", "kept_by_chance"),),
        derive={"kept_by_chance": compute_kept_by_chance},
        place=30,
    ),
)
