"""What a training step costs, in a sentence."""

from rankfall.report.page.question import ask_range

SENTENCES = (
    ask_range(
        "What does it cost?",
        "cost_ms",
        "the processor time of a training step of one network, by autograd on one thread, is largest in",
        "{:.2f} ms".format,
        place=40,
    ),
)
