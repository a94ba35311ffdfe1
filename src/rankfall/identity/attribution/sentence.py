"""Sentence on own shares."""

from rankfall.report.page.question import ask_range
from rankfall.report.page.sentences import percent

SENTENCES = (
    ask_range(
        "How much of a vector is its own token?",
        "own_share",
        "at the last layer the own share, mean over tokens, is largest in",
        percent,
        "Equal shares of all tokens are {}",
        place=110,
    ),
)
