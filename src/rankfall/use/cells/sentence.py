"""What networks have learned, and what depth does to it, in sentences."""

from rankfall.report.page.question import Read, TableQuestion, ask_range
from rankfall.report.page.sentences import percent
from rankfall.report.settings import settings_in
from rankfall.use.cells.depths import say_depth


def say_depths(read: Read) -> tuple[str, str]:
    scores = read("scorecard")
    if scores is None or not len(scores):
        return "", ""
    settings, said = say_depth(scores, settings_in(scores))
    return said, settings


SENTENCES = (
    ask_range(
        "What did they learn?",
        "accuracy",
        "test accuracy is highest in",
        percent,
        "The best guess that never sees an input has {}",
        place=120,
    ),
    TableQuestion("What does depth do to accuracy?", say_depths, place=130),
)
