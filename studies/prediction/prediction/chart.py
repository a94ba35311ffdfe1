"""The page's chart of outcomes."""

from rankfall import Chart

CHARTS = (
    Chart(
        "prediction",
        "What became of networks, by depth",
        "Accuracy over chance after a fixed budget, at the learning rate that the rule chose: 0 is what a guess is worth, 1 all right.",
        "depth",
        "over_chance",
        "depth",
        "accuracy over chance",
        line="task",
        choose=("architecture",),
        within=(-1.0, 1.0),
        place=190,
        study="use",
    ),
)
