"""Sentences on what networks learn, and on the effect of depth."""

from rankfall.annotations import DataFrame
from rankfall.report.headlines import by_name
from rankfall.report.page.question import Question, Read, TableQuestion, say_range
from rankfall.report.page.sentences import list_names, name, percent
from rankfall.report.score_text import share_of_attainable
from rankfall.report.settings import Setting, settings_in
from rankfall.use.cells.depths import say_depth


def say_learned(rows: DataFrame, setting: Setting, settings: int) -> str:
    said = say_range(
        rows,
        setting,
        settings,
        number="accuracy",
        text="test accuracy is highest in",
        write=percent,
        chance="The best guess that never sees an input has {}",
    )
    return said + (say_attainable(rows) if said else "")


def say_attainable(rows: DataFrame) -> str:
    """Write which masks limit the attainable accuracy, and the share of it that each architecture reaches."""
    headline = by_name("accuracy")
    shares = [(row, share) for _, row in rows.iterrows() if (share := share_of_attainable(row, headline)) is not None]
    parts = [f"{name(row)} has {share:.0%} of {percent(row.accuracy_attainable)}" for row, share in shares]
    return f" Of what its mask leaves attainable {list_names(parts)}." if parts else ""


def say_depths(read: Read) -> tuple[str, str]:
    scores = read("scorecard")
    if scores is None or not len(scores):
        return "", ""
    settings, said = say_depth(scores, settings_in(scores))
    return said, settings


SENTENCES = (
    Question("What did they learn?", ("accuracy",), say_learned, place=120),
    TableQuestion("What does depth do to accuracy?", say_depths, place=130),
)
