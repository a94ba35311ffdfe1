"""attention_weights.parquet: concentration of the rows of attention weights."""

from rankfall.report.schema import Column, Table


def attention_weights() -> Table:
    """Declare the table: one row per cell, layer, head, quantity and excluded token."""
    return Table(
        "attention_weights",
        "a cell x layer x head x what is left out x quantity",
        (
            Column("layer", "int", "1 is the first block", bounds=(1, "depth")),
            Column("tokens", "int", "T, sentinels included", unit="tokens"),
            Column("attention_head", "int", "null: mean of the heads' numbers", nullable=True),
            Column(
                "left_out",
                "text",
                "nothing, or first token: its row and its column, so that shares are of the weights of all others",
            ),
            Column(
                "quantity",
                "text",
                "of the shares p_j = |a_ij| / sum_j |a_ij| of a row, which are the weights themselves where these are positive and sum to "
                "one. entropy: -sum p log p, in nats; inverse_participation: sum p^2, one over how many tokens a row attends to; "
                "largest_share: the largest p; first_share: p of the first token, null where that is left out",
            ),
            Column("value", "float", "mean over rows, then over samples; null: see value_reason", nullable=True),
            Column(
                "deviation", "float", "standard deviation over samples; null: one sample, or no value", nullable=True
            ),
            Column("rows_without", "float", "share of rows that are left out because all their weights are zero"),
            Column("value_reason", "text", "why there is no value; else empty"),
        ),
        key=("layer", "attention_head", "left_out", "quantity"),
    )
