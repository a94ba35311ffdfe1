"""What networks have learned, what that costs, and what depth does to it, in sentences."""

from rankfall.annotations import DataFrame
from rankfall.report.headlines import by_name
from rankfall.report.page.question import Question, Read, TableQuestion, say_range
from rankfall.report.page.sentences import at, count_seeds, list_names, name, percent, write_number, write_tie
from rankfall.report.ranking import find_extreme, split_comparable
from rankfall.report.score_text import share_of_attainable
from rankfall.report.settings import Setting, settings_in
from rankfall.use.cells.depths import say_depth


def say_cost(rows: DataFrame, setting: Setting, settings: int) -> str:
    """Of the largest part of rows whose times may be compared."""
    headline = by_name("step_ms")
    parts = split_comparable(rows, headline, setting)
    if not parts:
        return ""
    part = parts[0]
    low = find_extreme(part, headline, setting, most=False)
    high = find_extreme(part, headline, setting, most=True)
    write = "{:.1f} ms".format
    said = f"is fastest in {write_tie(low, headline, write)}"
    if len(low) < len(part):
        overlap = ", which overlap within their deviations" if set(low.index) & set(high.index) else ""
        said += f" and slowest in {write_tie(high, headline, write)}{overlap}"
    elif len(part) == 1:
        said = f"takes {write_number(part.iloc[0], headline, write)} in {name(part.iloc[0])}"
    others = [name(row) for other in parts[1:] for _, row in other.iterrows()]
    left = f" Times of {list_names(others)} were taken otherwise and are not compared with these." if others else ""
    said = f"a training step of one network {said}, {part.step_ms_by.iloc[0]}{count_seeds(part, headline)}."
    return f"{at(setting, settings)}{said}{left}"


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
    """Return which masks leave less than every answer, and how much of that is reached."""
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
    Question("What does it cost?", ("step_ms",), say_cost, place=40),
    Question("What did they learn?", ("accuracy",), say_learned, place=120),
    TableQuestion("What does depth do to accuracy?", say_depths, place=130),
)
