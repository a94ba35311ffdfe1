"""Declare what is shown of `probe_trained`: headline numbers, charts and published numbers."""

from rankfall.annotations import DataFrame
from rankfall.report.cell_numbers import plain
from rankfall.report.headlines import Headline
from rankfall.report.lines import SHARE
from rankfall.report.page.chart import NETWORK, Chart, Level
from rankfall.report.published_numbers import read_published


def longest_trained(table: DataFrame) -> DataFrame:
    known = table[~table.beyond.astype(bool)]
    return known[known["length"] == known.groupby("key")["length"].transform("max")]


def probe_accuracy(rows: DataFrame) -> DataFrame:
    return plain(rows, "accuracy", chance=rows.chance, ceiling=rows.ceiling)


HEADLINES = (
    Headline(
        "probe_accuracy",
        "places named after training",
        "share of the places of equal tokens that the trained network names, at the longest trained length",
        ("length", "beyond", "accuracy"),
        longest_trained,
        probe_accuracy,
        first="only trained",
        beside={
            "chance": "accuracy of the best single answer for all places",
            "ceiling": "of the best answers with the trained network's distinct rows",
        },
        place=20,
    ),
)


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


DATA = ["position/probe_trained/published.csv"]
PUBLISHED = read_published(__file__)
