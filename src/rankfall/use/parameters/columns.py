"""parameters.parquet: the number of learned parameters of each network."""

from rankfall.report.schema import Column, Table


def parameters() -> Table:
    """Declare the table: one row per part of a network."""
    return Table(
        "parameters",
        "a cell x part",
        (
            Column(
                "part",
                "text",
                "all; attention: of all blocks; mlp; norms, gains and the rest of blocks: others; outside blocks: outside",
            ),
            Column(
                "count", "int", "numbers that are learned; one that several layers share counts once, outside blocks"
            ),
        ),
        key=("part",),
    )
