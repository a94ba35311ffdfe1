"""The accuracy of guessing for the networks of a figure: one number per task with its options."""

from rankfall.annotations import DataFrame


def chances(table: DataFrame, cells: DataFrame | None = None) -> list[float]:
    """Return the mean chance over seeds for each task with its options, in ascending order. It is not averaged over tasks, which would be
    the chance of no network. `cells`: the table with `chance`, if `table` does not have it."""
    known = table.drop_duplicates("key")
    if cells is not None:
        known = known.assign(chance=known.key.map(cells.drop_duplicates("key").set_index("key").chance))
    options = known.task_component if "task_component" in known else known.key.map(lambda _: "")
    return sorted(float(value) for value in known.chance.astype(float).groupby(options).mean().dropna())
