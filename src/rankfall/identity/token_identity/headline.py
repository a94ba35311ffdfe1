"""Headline number: the share of tokens that a linear map identifies."""

from rankfall.annotations import DataFrame
from rankfall.identity.token_identity.rows import ASKED, is_own
from rankfall.report.cell_numbers import at_last, plain
from rankfall.report.headlines import Headline
from rankfall.report.selection import select


def found_again(table: DataFrame) -> DataFrame:
    rows = select(table, ASKED)
    return at_last(rows[is_own(rows)])


def identity_rate(rows: DataFrame) -> DataFrame:
    return plain(rows, "rate", chance=rows.chance)


HEADLINES = (
    Headline(
        "identity_rate",
        "tokens found again at the last layer",
        "share of the tokens whose last state a trained linear map leads back to their own embedding, nearest by cosine among the "
        "tokens of the sentence",
        ("layer", "map", "loss", "trained_layer", "candidates", "distance", "rate"),
        found_again,
        identity_rate,
        first="trained",
        beside={"chance": "rate of a guess among the tokens of the sentence"},
        place=20,
    ),
)
