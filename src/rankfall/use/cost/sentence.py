"""Sentence on the cost of a training step."""

from rankfall.report.page.question import ask_range

SENTENCES = (
    ask_range(
        "What does it cost?",
        "cost_ms",
        "the processor time of a training step of one network, by autograd on one thread, is largest in",
        place=40,
        unit="ms",
    ),
)
