"""Headline number: the processor time of a training step."""

from rankfall.annotations import DataFrame
from rankfall.report.cell_numbers import all_rows, plain
from rankfall.report.headlines import Headline


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
