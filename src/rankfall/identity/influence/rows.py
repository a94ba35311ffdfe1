"""Which rows of the tables of influence are of shares, and what these are compared with."""

from rankfall.annotations import DataFrame, Series

SHARES = {"quantity": "share"}


def curve(table: DataFrame) -> Series:
    """What an influence is of: a formula, or a network with a position encoding."""
    network = table.network.where(table.network == "none", " of " + table.network + ", position " + table.position)
    return table.source + network.where(table.network != "none", "")


def equal_places(table: DataFrame) -> Series:
    return 1 / table["places" if "places" in table else "length"]
