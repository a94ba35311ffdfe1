"""paths.parquet: accuracy of paths by length, of the whole model, and of guessing."""

from rankfall.report.schema import Column, Table


def paths() -> Table:
    """Declare the table: one row per random set of paths, or per reference line."""
    return Table(
        "paths",
        "a cell x evaluation x path length x number of paths x repeat; whole model and chance as own rows",
        (
            Column("kind", "text", "path (a set of paths), whole (the whole model) or chance (a guess without input)"),
            Column(
                "evaluation",
                "text",
                "attention recomputed from the path's own states, or frozen: the whole model's; null: chance",
                nullable=True,
            ),
            Column(
                "length",
                "int",
                "blocks in which it takes a head; null unless a path",
                unit="layers",
                nullable=True,
            ),
            Column("paths", "int", "how many paths were summed; null unless a path", nullable=True),
            Column("repeat", "int", "which random set of paths; null unless a path", nullable=True),
            Column("accuracy", "float", "accuracy on the test set, per token", nan=True),
        ),
        key=("kind", "evaluation", "length", "paths", "repeat"),
    )
