"""A question that the page answers, from the scorecard or from other tables. A quantity declares its own in `sentence.py` of its folder, as
`SENTENCES`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from rankfall.annotations import DataFrame
from rankfall.report.headlines import by_name
from rankfall.report.page.sentences import at, compare_with_chance, count_seeds, list_undecided, write_tie
from rankfall.report.ranking import find_extreme, split_decidable, with_number
from rankfall.report.settings import Setting

Read = Callable[[str], Any]  # a table, or None where the run has none
Say = Callable[["DataFrame", Setting, int], str]  # of the rows of a setting; of how many it was chosen


@dataclass(frozen=True)
class Question:
    """What is asked of the networks of a setting: `say` is given the rows of the scorecard of which one of the numbers was asked.
    `whole`: it says itself which rows have no number; `brief`: which have lost seeds is said by the finding after it; `place`: among all
    questions, the lowest first."""

    name: str
    numbers: tuple[str, ...]
    say: Say
    whole: bool = False
    brief: bool = False
    place: int = 1000
    study: str = ""  # the section that has the numbers; by default the study of its folder
    table: str = ""


@dataclass(frozen=True)
class TableQuestion:
    """What is asked of tables: `say` gives the answer, empty where they have none, and the setting that it is about, or nothing."""

    name: str
    say: Callable[[Read], tuple[str, str]]
    place: int = 1000
    study: str = ""
    table: str = ""


def say_range(
    rows: DataFrame,
    setting: Setting,
    settings: int,
    *,
    number: str,
    text: str,
    write: Callable[[float], str],
    chance: str = "",
) -> str:
    """Say who has the most and who the least of a number, with those that tie; of one architecture its number. Nothing is ranked where
    there is one seed."""
    headline = by_name(number)
    known = with_number(rows, headline, setting)
    if not len(known):
        return ""
    ranked, alone = split_decidable(known, headline)
    if len(known) == 1:
        said = f"{headline.title} is known of one architecture alone, {write_tie(known, headline, write)}"
    elif not len(ranked):
        said = f"{headline.title}: {list_undecided(alone, headline, write)}"
    else:
        high, low = (find_extreme(ranked, headline, setting, most=most) for most in (True, False))
        said = f"{text} {write_tie(high, headline, write)}"
        if len(high) < len(ranked):
            overlap = ", which overlap" if set(low.index) & set(high.index) else ""
            said += f", least in {write_tie(low, headline, write)}{overlap}"
        else:
            said += ", all that have this number"
        said += f"; not ranked: {list_undecided(alone, headline, write)}" if len(alone) else ""
    said = f"{at(setting, settings)}{said}{count_seeds(known, headline)}."
    return said + (compare_with_chance(known, headline, write, chance) if chance else "")


def ask_range(
    question: str, number: str, text: str, write: Callable[[float], str], chance: str = "", place: int = 1000
) -> Question:
    """Which architecture has most of a number, and which least."""
    return Question(
        question, (number,), partial(say_range, number=number, text=text, write=write, chance=chance), place=place
    )
