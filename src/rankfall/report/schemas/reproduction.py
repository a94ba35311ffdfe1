"""reproduction.parquet: ours beside the published numbers."""

from rankfall.report.schema import Column, Table


def reproduction() -> Table:
    """One row a published number, at each of our settings that measures the same."""
    return Table(
        "reproduction",
        "a published number x a setting of ours",
        (
            Column("name", "text", "short name of the number"),
            Column("setting", "text", "which of our settings measures it: column=value, ...; empty if none does"),
            Column("source", "text", "paper or code: they do not always agree, so a quantity may be here twice"),
            Column("place", "text", "figure or section"),
            Column("what", "text", "what the number is"),
            Column(
                "kind", "text", "measured; typed (a constant in a script); claimed (a statement); exact (a formula)"
            ),
            Column("sense", "text", "how ours should lie: equal (within tolerance), above or below the published"),
            Column("published", "float", "the published number"),
            Column("tolerance", "float", "by how much ours may differ and still be called equal"),
            Column(
                "ours",
                "float",
                "mean over seeds of our number; null: nothing in this run measures it",
                nullable=True,
                nan=True,
            ),
            Column(
                "deviation", "float", "our standard deviation over seeds; null: fewer than two", nullable=True, nan=True
            ),
            Column("seeds", "int", "seeds that ours is the mean of, or other repetitions where nothing has a seed"),
            Column("difference", "float", "ours minus the published; null without ours", nullable=True, nan=True),
            Column("holds", "bool", "whether ours lies as it should; null without ours", nullable=True),
        ),
        key=("name", "setting"),
        cells=False,
    )
