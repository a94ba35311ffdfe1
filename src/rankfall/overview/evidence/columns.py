"""The table evidence.parquet: the measurements of the claims' experiments."""

from rankfall.report.schema import Column, Table


def evidence() -> Table:
    """Describe the table: one row per number."""
    return Table(
        "evidence",
        "claim x quantity x line x x x seed",
        (
            Column("claim", "text", "the claim whose experiment it is of"),
            Column("quantity", "text", "what is measured, and over what: `spread, by layer`"),
            Column("line", "text", "which of the compared networks or settings"),
            Column("x", "float", "where on the axis that the quantity names"),
            Column("seed", "int", "names the random numbers of the experiment"),
            Column("value", "float", "the number; null: see value_reason", nullable=True),
            Column("value_reason", "text", "why there is no number; null where there is one", nullable=True),
        ),
        key=("claim", "quantity", "line", "x", "seed"),
        cells=False,
    )
