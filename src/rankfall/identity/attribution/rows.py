"""Which rows of the table, and of that of real models, are which shares."""

from rankfall.annotations import DataFrame, Series

ALL_TOKENS = {"kept_tokens": "all"}
JACOBIAN = {"method": "jacobian", **ALL_TOKENS}  # how shares are found by default
OWN = {"quantity": "own share"}


def equal_shares(table: DataFrame) -> Series:
    """Where every token of a sample has the same share."""
    if "length" not in table:
        return table.samples / table.tokens
    return 1 / (
        table["length"] - (table.kept_tokens == "without first")
    )  # of models, of whose tokens only some are asked
