"""residuals.parquet: how far each layer's states are from rank one."""

from rankfall.report.schema import Column, Table


def residuals() -> Table:
    """One row a cell, layer, place and quantity."""
    return Table(
        "residuals",
        "a cell x layer x place x quantity x norm x centre",
        (
            Column("layer", "int", "0 is the embedding"),
            Column("place", "text", "state: after the block (or the embedding); before or after a norm of the block"),
            Column(
                "quantity",
                "text",
                "residual: |res(X)|/|X|; absolute_residual: |res(X)|; sigma_ratio: sigma_2/sigma_1; stable_rank: "
                "|X|_F^2/|X|_2^2; numerical_rank: singular values above rounding",
            ),
            Column("matrix_norm", "text", "composite: sqrt(l1 linf), operator norms; null: spectral", nullable=True),
            Column("centre", "text", "mean of the tokens, or best: minimises the norm; null: spectral", nullable=True),
            Column("value", "float", "mean over samples", nan=True),
            Column("deviation", "float", "standard deviation over samples (seeds are cells)", nan=True),
            Column(
                "floor_share",
                "float",
                "share of samples whose relative value is float64 rounding noise; null: has no floor",
                nullable=True,
            ),
        ),
        key=("layer", "place", "quantity", "matrix_norm", "centre"),
    )
