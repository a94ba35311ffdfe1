"""Declare what is shown of `attribution`: headline numbers, charts, sentences and selections of its rows."""

from rankfall.annotations import DataFrame, Series
from rankfall.report.cell_numbers import at_last, plain
from rankfall.report.headlines import Headline
from rankfall.report.lines import SHARE
from rankfall.report.page.chart import NETWORK, Chart, Level
from rankfall.report.page.question import ask_range, percent
from rankfall.report.selection import select

ALL_TOKENS = {"kept_tokens": "all"}
JACOBIAN = {"method": "jacobian", **ALL_TOKENS}  # the default method
OWN = {"quantity": "own share"}


def equal_shares(table: DataFrame) -> Series:
    """Return the share of each token if all tokens of a sample had the same share."""
    if "length" not in table:
        return table.samples / table.tokens
    return 1 / (
        table["length"] - (table.kept_tokens == "without first")
    )  # for models, of whose tokens only some are sampled


def select_own_share(table: DataFrame) -> DataFrame:
    return at_last(select(table, JACOBIAN | OWN))


def own_share(rows: DataFrame) -> DataFrame:
    return plain(rows, "value", chance=equal_shares(rows))


HEADLINES = (
    Headline(
        "own_share",
        "own share at the last layer",
        "how much of a token's last state comes from its own input, by the norms of its derivatives, mean over tokens",
        ("layer", "method", "kept_tokens", "quantity", "value"),
        select_own_share,
        own_share,
        first="trained",
        beside={"chance": "1/n, where all tokens have equal shares"},
        place=30,
    ),
)


CHARTS = (
    Chart(
        "own_share",
        "Own share of a token's state",
        "How much of a token's state comes from its own input, by several ways to attribute it.",
        "layer",
        "value",
        "layer",
        "own share",
        choose=(*NETWORK, "method", "kept_tokens"),
        start={"training": "converged", **JACOBIAN},
        where=OWN,
        derive={"equal_shares": equal_shares},
        within=SHARE,
        beside=(Level("equal shares", "equal_shares"),),
        place=50,
    ),
)


SENTENCES = (
    ask_range(
        "How much of a vector is its own token?",
        "own_share",
        "at the last layer the own share is largest in",
        percent,
        place=110,
    ),
)
