"""cell_influence.parquet: influence of each position on the last token, in causal cells."""

from rankfall.report.schema import Column, Table


def cell_influence() -> Table:
    """Declare the table: one row per position."""
    return Table(
        "cell_influence",
        "a cell x layer x place",
        (
            Column("layer", "int", "1 is the first block"),
            Column("place", "int", "1 is the first token, sentinels included"),
            Column("places", "int", "how many there are", unit="tokens"),
            Column(
                "share",
                "float",
                "of the influence on the last token: norm of d e_n / d x_i over the sum, mean over samples; null: see value_reason",
                nullable=True,
            ),
            Column("deviation", "float", "over samples; null: one sample, or no share", nullable=True),
            Column("samples", "int", "samples that it is over"),
            Column(
                "value_reason",
                "text",
                "why there is no share: influences that are zero or beyond the range of float64; else empty",
                nullable=True,
            ),
        ),
        key=("layer", "place"),
    )
