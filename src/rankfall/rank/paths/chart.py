"""Chart of the accuracy of paths by length for the page."""

from rankfall.rank.paths.rows import CHANCE, PATHS, WHOLE
from rankfall.report.page.chart import NETWORK, SHARE, Chart, Level

CHARTS = (
    Chart(
        "paths",
        "Accuracy of paths by their length",
        "A path goes through one head of some layers and around the others by their skip connections. Accuracy of the sum of a few random "
        "paths of each length alone: by the theory of rank collapse short ones do most.",
        "length",
        "accuracy",
        "layers that a path goes through",
        "accuracy",
        choose=(*NETWORK, "evaluation", "paths"),
        where=PATHS,
        within=SHARE,
        beside=(
            Level("chance", where=CHANCE),
            Level("the whole network", where=WHOLE, shared=False),
        ),
        place=40,
    ),
)
