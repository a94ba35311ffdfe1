"""census_choices.parquet: what each choice of a design multiplies the kept residual by."""

from rankfall.report.schema import Column, Table


def census_choices() -> Table:
    """One row a choice."""
    return Table(
        "census_choices",
        "a choice of a design",
        (
            Column("choice", "text", "what the types differ in"),
            Column("chosen", "int", "types that have it; null: a quantity", nullable=True),
            Column("effect", "float", "factor of residual_last / residual_first, all else equal", nullable=True),
            Column("low", "float", "2.5th percentile over draws of whole folders of the library", nullable=True),
            Column("high", "float", "97.5th percentile", nullable=True),
            Column("gain", "float", "of the share explained out of sample, by this choice beside all others", nullable=True),
            Column("reason", "text", "why there is no effect; else empty"),
            Column("types", "int", "types that the regression is over"),
            Column("families", "int", "folders of the library that they are in"),
            Column("share", "float", "share of the variance explained in folders left out of the fit", nullable=True),
        ),
        key=("choice",),
        cells=False,
    )  # fmt: skip
