"""Sentence on the accuracy of short paths."""

from rankfall.report.page.question import ask_range
from rankfall.report.page.sentences import percent

SENTENCES = (
    ask_range(
        "Do short paths do the work?",
        "short_paths",
        "of the way from chance to the network's own accuracy, paths through at most a third of the layers make most in",
        percent,
        place=70,
    ),
)
