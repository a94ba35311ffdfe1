"""Declare the table `parameters` and what is shown of it: the number of learned parameters of each network."""

from rankfall.report.lines import POSITIVE
from rankfall.report.page.chart import Chart
from rankfall.report.schema import Table, declare_table


def columns() -> Table:
    """Declare the table of numbers of parameters."""
    return declare_table(
        "parameters",
        "each cell and part",
        """
        part text: all; attention: of all blocks; mlp; norms, gains and the rest of blocks: others; outside blocks: outside
        count int: numbers that are learned; one that several layers share counts once, outside blocks
        """,
        key="part",
    )


CHARTS = (
    Chart(
        "parameters",
        "How many numbers are learned",
        "Parameters of each architecture: all, or those of attention, of MLPs, of the rest of the blocks, and outside of them.",
        "architecture",
        "count",
        "",
        "parameters",
        kind="points",
        choose=("task", "depth", "part"),
        start={"part": "all"},
        within=POSITIVE,
        place=60,
    ),
)
