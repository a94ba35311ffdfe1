"""Headline number: the share of accuracy kept on longer text."""

import math

from rankfall.annotations import DataFrame
from rankfall.position.extrapolation.rows import compute_kept_by_chance
from rankfall.report.cell_numbers import plain
from rankfall.report.headlines import Headline

LONGER = 4.0  # in trained lengths


def longer(table: DataFrame) -> DataFrame:
    away = (table.times / LONGER).astype(float).map(lambda times: abs(math.log(times)))
    found = table[away == away.groupby(table.key).transform("min")]
    return found[
        found.times == found.groupby("key").times.transform("max")
    ]  # of lengths equally near, such as 2 and 8, the longer


def select_kept(rows: DataFrame) -> DataFrame:
    return plain(rows, "kept", rows.refused.fillna("") if len(rows) else None, chance=compute_kept_by_chance(rows))


HEADLINES = (
    Headline(
        "kept",
        "accuracy kept on longer text",
        "accuracy on text 4 times as long as in training (or the tested length nearest to that), over that at the trained length",
        ("times", "kept"),
        longer,
        select_kept,
        first="only trained",
        beside={"chance": "what is kept by always naming the most frequent word"},
        place=30,
    ),
)
