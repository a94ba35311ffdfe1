"""states.parquet: sizes and directions of each layer's states."""

from rankfall.report.schema import Column, Table


def states() -> Table:
    """Declare the table: one row per cell, layer, quantity and excluded part."""
    return Table(
        "states",
        "a cell x layer x what is left out x quantity",
        (
            Column("layer", "int", "0 is what enters the first block", bounds=(0, "depth")),
            Column("tokens", "int", "T, sentinels included", unit="tokens"),
            Column(
                "left_out",
                "text",
                "nothing; first token (a sentinel, where one stands first); largest channels: those with the largest root mean square "
                "over tokens and samples of this layer; both. Sentinels count as tokens",
            ),
            Column("channels", "int", "how many channels are left out"),
            Column(
                "quantity",
                "text",
                "norm: root mean square of all entries; cosine: mean over pairs of tokens; stable_rank: sum s^2 / max s^2 of the singular "
                "values s; stable_rank_gram: sum s^4 / max s^4, that of X X^T; residual: |res(X)| / |X| "
                "about the mean token, composite norm",
            ),
            Column("value", "float", "mean over samples; null: see value_reason", nullable=True),
            Column(
                "deviation", "float", "standard deviation over samples; null: one sample, or no value", nullable=True
            ),
            Column(
                "floor_share",
                "float",
                "share of samples whose residual is rounding noise of float64, as in `residuals`; null: another quantity",
                nullable=True,
            ),
            Column("value_reason", "text", "why there is no value; else empty"),
        ),
        key=("layer", "left_out", "quantity"),
    )
