"""path_counts.parquet: number of paths of each length."""

from rankfall.report.schema import Column, Table


def path_counts() -> Table:
    """Declare the table: one row per model and path length."""
    return Table(
        "path_counts",
        "a model x path length",
        (
            Column("model", "text", "name, as in the config"),
            Column("depth", "int", "layers", unit="layers"),
            Column("heads", "int", "attention heads of a layer"),
            Column("length", "int", "layers that a path goes through", unit="layers"),
            Column("log10_paths", "float", "log10 of the number of such paths, C(L, k) H^k", unit="log10"),
            Column("proportion", "float", "share among all paths of the model, (1 + H)^L"),
            Column("published", "float", "the same in the published figure; null: not shown there", nullable=True),
            Column("deviation", "float", "proportion less published", nullable=True),
        ),
        key=("model", "length"),
        cells=False,
    )
