"""residuals.parquet: distance of each layer's states from rank one."""

from rankfall.report.schema import Column, Table


def residuals() -> Table:
    """Declare the table: one row per cell, layer, place and quantity."""
    return Table(
        "residuals",
        "a cell x layer x place x quantity x norm x centre",
        (
            Column("layer", "int", "0 is the embedding", bounds=(0, "depth")),
            Column(
                "place",
                "text",
                "state: after the block (or the embedding); before or after a norm of the block, which call if it is called again",
            ),
            Column(
                "quantity",
                "text",
                "residual: |res(X)|/|X|; absolute_residual: |res(X)|; sigma_ratio: sigma_2/sigma_1; stable_rank: "
                "|X|_F^2/|X|_2^2; numerical_rank: singular values above rounding",
            ),
            Column("matrix_norm", "text", "composite: sqrt(l1 linf), operator norms; null: spectral", nullable=True),
            Column(
                "centre",
                "text",
                "mean of the tokens, or best: minimises the norm, exactly for l1 and frobenius, to 1% of the value for "
                "linf; for composite the best that a descent finds, never worse than the mean; null: spectral",
                nullable=True,
            ),
            Column("value", "float", "mean over samples; null: see value_reason", nullable=True, bounds=(0, None)),
            Column(
                "deviation",
                "float",
                "standard deviation over samples (seeds are cells)",
                nullable=True,
                bounds=(0, None),
            ),
            Column(
                "floor_share",
                "float",
                "share of samples whose value is float64 rounding noise: below 16 units relative, or the matrix moves by "
                "more than a tenth in a second pass that moves states by 4 units on their way; null: has no floor, or no value",
                nullable=True,
            ),
            Column(
                "value_reason",
                "text",
                "why there is no value: a state that is zero or beyond the range of float64, whose ratio is not 0 but unknown; else empty",
                nullable=True,
            ),
        ),
        key=("layer", "place", "quantity", "matrix_norm", "centre"),
    )
