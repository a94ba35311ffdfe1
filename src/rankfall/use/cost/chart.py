"""Chart of the processor time of a step for the page."""

from rankfall.report.page.chart import POSITIVE, Chart

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
