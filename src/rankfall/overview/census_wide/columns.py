"""The table census_wide.parquet: what a small model keeps beside a model of the released width."""

from rankfall.report.schema import Column, Table


def census_wide() -> Table:
    """Describe the table: one row per model type that is measured at both sizes."""
    return Table(
        "census_wide",
        "a model type",
        (
            Column("type", "text", "the library's name of the model type"),
            Column("stream", "text", "the stream that `census` has of it"),
            Column("norm_place", "text", "before, behind or inside the branch, after the addition", nullable=True),
            Column("layers", "int", "of both models"),
            Column("width", "int", "of the small model"),
            Column("released_width", "int", "of the wide one"),
            Column("kept", "float", "residual_last / residual_first of the small model, whose maps have the released size"),
            Column("kept_wide", "float", "the same of the model of the released width"),
            Column("off", "float", "distance of the two"),
            Column("entered", "float", "size of a number of the state that enters, root mean square, of the small model"),
            Column("entered_wide", "float", "the same of the wide one"),
        ),
        key=("type",),
        cells=False,
    )  # fmt: skip
