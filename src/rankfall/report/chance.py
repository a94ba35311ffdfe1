"""What a guess reaches, of the networks that a figure draws: one number a task, as its options make another task of it."""

from rankfall.annotations import DataFrame


def chances(table: DataFrame, cells: DataFrame | None = None) -> list[float]:
    """The mean over seeds for each task with its options, the least first: a mean over tasks is no network's chance. `cells`: the table
    with `chance`, where `table` has none."""
    known = table.drop_duplicates("key")
    if cells is not None:
        known = known.assign(chance=known.key.map(cells.drop_duplicates("key").set_index("key").chance))
    options = known.task_component if "task_component" in known else known.key.map(lambda _: "")
    return sorted(float(value) for value in known.chance.astype(float).groupby(options).mean().dropna())
