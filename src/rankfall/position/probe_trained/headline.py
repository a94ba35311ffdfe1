"""Headline number: the positions that the trained network names."""

from rankfall.annotations import DataFrame
from rankfall.report.cell_numbers import plain
from rankfall.report.headlines import Headline


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
