"""Selection of shares, for cells and for models."""

from rankfall.annotations import DataFrame, Series

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
