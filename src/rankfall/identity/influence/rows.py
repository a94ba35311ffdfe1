"""Selection of shares in the tables of influence, and their baseline."""

from rankfall.annotations import DataFrame, Series

SHARES = {"quantity": "share"}


def curve(table: DataFrame) -> Series:
    """Return the name of each curve: a formula, or a network with a position encoding."""
    network = table.network.where(table.network == "none", " of " + table.network + ", position " + table.position)
    return table.source + network.where(table.network != "none", "")


def equal_places(table: DataFrame) -> Series:
    return 1 / table["places" if "places" in table else "length"]
