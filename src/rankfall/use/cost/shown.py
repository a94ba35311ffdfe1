"""Declare what is shown of `cost`: headline numbers, charts and sentences."""

from rankfall.annotations import DataFrame
from rankfall.report.cell_numbers import all_rows, plain
from rankfall.report.headlines import Headline
from rankfall.report.lines import POSITIVE
from rankfall.report.page.chart import Chart
from rankfall.report.page.question import ask_range


def cost_ms(rows: DataFrame) -> DataFrame:
    return plain(rows, "cost_ms", rows.cost_ms_reason).assign(readings=rows.readings)


HEADLINES = (
    Headline(
        "cost_ms",
        "processor time of a training step (ms)",
        "milliseconds of processor time that one optimiser step of one network takes by itself, on one thread through autograd: the median "
        "of readings for which all architectures of the setting took turns in one job; two are ranked where the 95% intervals of their "
        "medians do not overlap",
        ("cost_ms", "readings"),
        all_rows,
        cost_ms,
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
        place=40,
        unit="ms",
    ),
)
