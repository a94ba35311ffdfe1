"""offsets.parquet: learned terms for each offset between two tokens."""

from rankfall.report.schema import Column, Table


def offsets() -> Table:
    """Declare the table: one row per entry of a Toeplitz matrix."""
    return Table(
        "offsets",
        "a cell x term x layer x head x offset",
        (
            Column(
                "which",
                "text",
                "B: what a position adds to scores; C: what the normaliser `urpe` multiplies weights by",
            ),
            Column("layer", "int", "1 is the first block; null: all layers share the term", nullable=True),
            Column("of_head", "int", "1 is the first attention head"),
            Column(
                "offset", "int", "i - j: place of the token that looks less that of the one it looks at", unit="tokens"
            ),
            Column("value", "float", "the matrix's entry at this offset"),
        ),
        key=("which", "layer", "of_head", "offset"),
    )
