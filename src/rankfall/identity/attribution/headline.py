"""Headline number: the share of a token's last state that comes from its own input."""

from rankfall.annotations import DataFrame
from rankfall.identity.attribution.rows import JACOBIAN, OWN, equal_shares
from rankfall.report.cell_numbers import at_last, plain
from rankfall.report.headlines import Headline
from rankfall.report.selection import select


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
