"""cost.parquet: the processor time of a training step."""

from rankfall.report.schema import Column, Table


def cost() -> Table:
    """Declare the table: one row per trained network. The seeds of an architecture at a setting share its readings."""
    return Table(
        "cost",
        "a trained network",
        (
            Column("key", "text", "the network's cell"),
            Column("task", "text", "the task's name in the config"),
            Column("architecture", "text", "the architecture's name in the config"),
            Column("training", "text", "the training's name in the config"),
            Column("depth", "int", "number of blocks"),
            Column("seed", "int", "the cell's seed"),
            Column(
                "cost_ms",
                "float",
                "processor time of an optimiser step of one network: gradients by autograd, one thread; median of the readings. "
                "null: a step failed",
                "ms",
                nullable=True,
                provenance=True,
            ),
            Column(
                "readings",
                "text",
                "the readings, in ms: `0=3.21 1=3.25`, of equal numbers in the same minute: in each round, every architecture of the "
                "setting is built anew and timed in turn",
                nullable=True,
                provenance=True,
            ),
            Column("cost_ms_reason", "text", "why there is no time; empty where there is"),
        ),
        key=("key",),
        cells=False,
    )
