"""Declare the table `cost` and what is shown of it: the processor time of a training step."""

from rankfall.report.headlines import Headline, all_rows, plain
from rankfall.report.lines import POSITIVE
from rankfall.report.page.chart import Chart
from rankfall.report.page.question import ask_range
from rankfall.report.schema import Table, declare_table


def columns() -> Table:
    """Declare the table of processor times."""
    return declare_table(
        "cost",
        "each trained network",
        """
        key text: the network's cell
        task text: the task's name in the config
        architecture text: the architecture's name in the config
        training text: the training's name in the config
        depth int: number of blocks
        seed int: the cell's seed
        cost_ms float? [ms] provenance: processor time of an optimiser step of one network: gradients by autograd, one thread; median of
            the readings. null: a step failed
        readings text? provenance: the readings, in ms: `0=3.21 1=3.25`, of equal numbers in the same minute: in each round, every
            architecture of the setting is built anew and timed in turn
        cost_ms_reason text: why there is no time; empty where there is
        """,
        key="key",
        cells=False,
    )


HEADLINES = (
    Headline(
        "cost_ms",
        "processor time of a training step (ms)",
        "milliseconds of processor time that one optimiser step of one network takes by itself, on one thread through autograd: the median "
        "of readings for which all architectures of the setting took turns in one job; two are ranked where the 95% intervals of their "
        "medians do not overlap",
        ("cost_ms", "readings"),
        all_rows,
        lambda rows: plain(rows, "cost_ms", rows.cost_ms_reason).assign(readings=rows.readings),
        unit="ms",
        first="only trained",
        good="low",
        digits=2,
        provenance=True,
        counted="reading",
        place=30,
    ),
)


CHARTS = (
    Chart(
        "cost",
        "What a step costs",
        "Processor time of a training step of one network, on one thread through autograd; the architectures of a setting took turns "
        "in one job.",
        "architecture",
        "cost_ms",
        "",
        "processor time of a step (ms)",
        kind="points",
        choose=("setting",),
        within=POSITIVE,
        place=50,
    ),
)


SENTENCES = (
    ask_range(
        "What does it cost?",
        "cost_ms",
        "a training step of one network takes most processor time in",
        place=130,
        unit="ms",
    ),
)
