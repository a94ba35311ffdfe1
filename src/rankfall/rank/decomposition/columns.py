"""decomposition.parquet: the contribution of paths of each length to the output."""

from rankfall.report.schema import Column, Table


def decomposition() -> Table:
    """Declare the table: one row per cell and path length, and one for the biases."""
    return Table(
        "decomposition",
        "a cell x path length; the bias term as its own row",
        (
            Column("term", "text", "paths, or bias: all that descends from biases"),
            Column("length", "int", "layers that these paths go through; null: bias", unit="layers", nullable=True),
            Column("size", "float", "Frobenius norm of the sum over these paths, over all samples", nullable=True),
            Column("norm_share", "float", "that, of the sum of all terms' norms", nullable=True),
            Column("output_share", "float", "<term, output> / <output, output>: signed, adds up to one", nullable=True),
            Column(
                "relative_residual",
                "float",
                "|res|/|.| of the term, composite norm, mean over samples; null: a term of a sample is zero",
                nullable=True,
            ),
            Column("loss_without", "float", "test loss with the term taken out of the last state", nullable=True),
            Column("accuracy_without", "float", "test accuracy then; null for regression", nullable=True),
            Column("loss_alone", "float", "test loss of the term alone, with the bias term", nullable=True),
            Column("accuracy_alone", "float", "test accuracy then; null for regression", nullable=True),
            Column("loss", "float", "test loss of the whole network on the same samples", nullable=True),
            Column("accuracy", "float", "test accuracy of the whole network; null for regression", nullable=True),
            Column(
                "error",
                "float",
                "largest entry of (sum of all terms - output) / largest entry of output",
                nullable=True,
            ),
            Column(
                "value_reason",
                "text",
                "why the term has no size or shares: the output is beyond the range of float64; else empty",
                nullable=True,
            ),
        ),
        key=("term", "length"),
    )
