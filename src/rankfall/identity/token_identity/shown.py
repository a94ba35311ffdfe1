"""Declare what is shown of `token_identity`: headline numbers, charts, sentences and selections of its rows."""

from rankfall.annotations import DataFrame, Series
from rankfall.report.cell_numbers import at_last, plain
from rankfall.report.headlines import Headline
from rankfall.report.lines import SHARE
from rankfall.report.page.chart import NETWORK, Chart, Level
from rankfall.report.page.question import ask_range, percent
from rankfall.report.selection import select

NEAREST = {"candidates": "sentence", "distance": "cosine"}  # default candidates and distance
LINEAR = {"map": "linear", "loss": "cosine"}
ASKED = {**LINEAR, **NEAREST}


def is_own(table: DataFrame) -> Series:
    """Check whether a map is untrained or applied to the layer that it was trained on."""
    return (table.trained_layer.isna() | (table.trained_layer == table.layer)).astype(bool)


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


CHARTS = (
    Chart(
        "identity",
        "Tokens found again, by layer",
        "A map leads each token's state back towards the embeddings: share of the tokens for which their own is then the nearest. Naive: "
        "without a map.",
        "layer",
        "rate",
        "layer",
        "share of the tokens found",
        choose=(*NETWORK, "map", "loss", "candidates", "distance"),
        start={"training": "converged", **ASKED},
        derive={"own": is_own},
        where={"own": True},
        within=SHARE,
        beside=(Level("chance", "chance"),),
        place=30,
    ),
)


SENTENCES = (
    ask_range(
        "Can a token still be found in the last layer?",
        "identity_rate",
        "a linear map finds most tokens in",
        percent,
        place=100,
    ),
)
