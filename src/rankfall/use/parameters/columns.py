"""parameters.parquet: how many numbers a network learns."""

from rankfall.report.schema import Column, Table


def parameters() -> Table:
    """One row a part of a network."""
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
