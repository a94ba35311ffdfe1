"""Sentence on the accuracy kept on longer text."""

from rankfall.report.page.question import ask_range
from rankfall.report.page.sentences import percent

SENTENCES = (
    ask_range(
        "What happens on longer text?",
        "kept",
        "at about 4 times the trained length most accuracy is kept by",
        percent,
        "Always naming the most frequent word keeps {}",
        place=90,
    ),
)
