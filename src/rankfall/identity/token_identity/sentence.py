"""Sentence on the share of tokens that are identified."""

from rankfall.report.page.question import ask_range
from rankfall.report.page.sentences import percent

SENTENCES = (
    ask_range(
        "Can a token still be found in the last layer?",
        "identity_rate",
        "a linear map finds most tokens in",
        percent,
        "A guess among the tokens of the sentence finds {}",
        place=100,
    ),
)
