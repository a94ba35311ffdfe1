"""The table claims.parquet: claims about depth, and whether they hold here."""

from rankfall.report.schema import Column, Table


def claims() -> Table:
    """Describe the table: one row per claim that the run has measured."""
    return Table(
        "claims",
        "a claim of a paper",
        (
            Column("claim", "text", "its name"),
            Column("says", "text", "the statement"),
            Column("paper", "text", "who says it, where"),
            Column("link", "text", "the paper"),
            Column("seen", "text", "what of the source was read for this"),
            Column("setting", "text", "what is measured here"),
            Column("threshold", "text", "when the claim counts as true"),
            Column(
                "changed",
                "text",
                "what of rule or experiment was changed after numbers were seen, and why; empty: nothing",
            ),
            Column("verdict", "text", "holds; holds only in part (`said` says where not); contradicted; undecided"),
            Column("said", "text", "what was found, in a sentence"),
            Column(
                "extends",
                "text",
                "where else the statement is true or not: masks, sizes, positions and the like that the bench adds to the source's "
                "setting; never part of the verdict; empty: nothing is added",
            ),
            Column("number", "float", "the number that decides; null: no single one does", nullable=True),
            Column("low", "float", "lower end of its 95% interval over seeds", nullable=True),
            Column("high", "float", "upper end of its 95% interval over seeds", nullable=True),
            Column("seeds", "int", "seeds that the number is a mean of; 0 where there is none"),
            Column("wants", "text", "what would decide it; empty where it is decided"),
            Column(
                "shown",
                "text",
                "the quantity of `evidence` that its figure shows; empty: it rests on other tables alone",
            ),
            Column(
                "cells",
                "text",
                "keys of the networks of this run that it rests on; empty: its experiment trains its own, or none",
            ),
            Column("published", "int", "numbers of the source beside ours in the figure"),
            Column("defects", "text", "what is wrong in published code; empty: nothing was found"),
            Column("study", "text", "which module declares the claim"),
        ),
        key=("claim",),
        cells=False,
    )
