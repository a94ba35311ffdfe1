"""The table reproduction.parquet: results beside the published numbers."""

from rankfall.report.schema import Column, Table


def reproduction() -> Table:
    """Describe the table: one row per published number and matching setting of the run."""
    return Table(
        "reproduction",
        "a published number x a setting of ours",
        (
            Column("name", "text", "short name of the number"),
            Column("setting", "text", "which of our settings measures it: column=value, ...; empty if none does"),
            Column(
                "at_published",
                "bool",
                "whether that is what the published number was measured at; null: nothing measures it",
                nullable=True,
            ),
            Column(
                "source",
                "text",
                "word for the paper or code, which do not always agree, so a quantity may be here twice",
            ),
            Column("source_name", "text", "its authors and year"),
            Column("source_title", "text", "its title"),
            Column("source_link", "text", "where it is"),
            Column("place", "text", "figure or section"),
            Column("what", "text", "what the number is"),
            Column(
                "kind", "text", "measured; typed (a constant in a script); claimed (a statement); exact (a formula)"
            ),
            Column(
                "sense",
                "text",
                "how ours should lie: equal, magnitude, floor, above, below, all above or all below; said below",
            ),
            Column("published", "float", "the published number"),
            Column(
                "tolerance",
                "float",
                "by how much ours may differ; decades if the sense is magnitude, the most if it is floor",
            ),
            Column(
                "ours",
                "float",
                "mean over seeds of our number; null: nothing in this run measures it, or every seed failed",
                nullable=True,
                nan=True,
            ),
            Column(
                "deviation", "float", "our standard deviation over seeds; null: fewer than two", nullable=True, nan=True
            ),
            Column("seeds", "int", "seeds that ours is the mean of; 1 where nothing has a seed"),
            Column("held", "int", "of these, those whose own number lies as it should"),
            Column(
                "failed",
                "int",
                "seeds without a finite number, not done, or out of bounds: no comparison holds with one",
            ),
            Column("difference", "float", "ours minus the published; null without ours", nullable=True, nan=True),
            Column("holds", "bool", "whether ours lies as it should; null: nothing measures it", nullable=True),
        ),
        key=("name", "setting"),
        cells=False,
    )
