"""datasets.parquet: what each task made of each seed."""

from rankfall.report.schema import Column, Table


def datasets() -> Table:
    """One row a data set."""
    return Table(
        "datasets",
        "a task x seed",
        (
            Column("task", "text", "the task's name in the config"),
            Column("seed", "int", "the seed that the data is drawn from"),
            Column("data_key", "text", "content hash of the data set: the task's spec, its code, the seed"),
            Column("train", "int", "training samples", unit="samples"),
            Column("test", "int", "test samples", unit="samples"),
            Column("length", "int", "tokens in a sample", unit="tokens"),
            Column("size_in", "int", "symbols, or channels of a vector"),
            Column("size_out", "int", "classes, or channels of a value"),
            Column("chance", "float", "test accuracy of the best guess that never sees an input", nan=True),
        ),
        key=("task", "seed", "data_key"),
        cells=False,
    )
