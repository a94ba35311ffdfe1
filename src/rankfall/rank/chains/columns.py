"""chains.parquet: products of attention matrices along random paths of a model."""

from rankfall.rank.model_residuals.columns import MODEL_COLUMNS
from rankfall.report.schema import Column, Table


def chains() -> Table:
    """Declare the table: one row per path."""
    return Table(
        "chains",
        "a model x phase x seed x chain length x repeat",
        (
            *MODEL_COLUMNS,
            Column("chain", "int", "matrices in the product, one a layer", unit="layers"),
            Column("repeat", "int", "number of the random path"),
            Column("sample", "int", "which text of the batch"),
            Column(
                "residual",
                "float",
                "what the best rank-one part leaves of the product, relative, composite norm; null: see value_reason",
                nullable=True,
            ),
            Column(
                "from_mean", "float", "what equal rows leave of it: relative residual from the mean row", nullable=True
            ),
            Column("floor", "bool", "the residual is rounding noise"),
            Column(
                "value_reason",
                "text",
                "why there is none: weights that are not finite, zero, or beyond the range of float64; else empty",
                nullable=True,
            ),
        ),
        key=("model", "revision", "phase", "text", "length", "dtype", "seed", "chain", "repeat"),
        cells=False,
    )
