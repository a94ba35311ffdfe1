"""Chart of the positions that trained networks name for the page."""

from rankfall.report.page.chart import NETWORK, SHARE, Chart, Level

CHARTS = (
    Chart(
        "probe_trained",
        "Places named after training, by length",
        "Accuracy of naming the places of equal tokens; beyond the trained lengths a network has to extrapolate.",
        "length",
        "accuracy",
        "tokens",
        "accuracy",
        choose=NETWORK,
        within=SHARE,
        beside=(Level("chance", "chance"), Level("the most that its outputs allow", "ceiling", shared=False)),
        place=20,
    ),
)
