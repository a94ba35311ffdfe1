"""Questions that the page answers from the scorecard or from other tables. A quantity declares its questions as `SENTENCES` in
`shown.py` of its folder."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from rankfall.annotations import DataFrame
from rankfall.report.headlines import by_name
from rankfall.report.page.sentences import at, compare_with_chance, count_seeds, list_undecided, write_tie
from rankfall.report.ranking import find_extreme, split_decidable, with_number
from rankfall.report.settings import Setting
from rankfall.report.written import write_float

Read = Callable[[str], Any]  # name -> table, or None if the run does not have it
Say = Callable[["DataFrame", Setting, int], str]  # (rows of a setting, the setting, number of settings) -> sentence


@dataclass(frozen=True)
class Question:
    """A question about the networks of a setting. `say` receives the rows of the scorecard for which one of the numbers was measured.
    `whole`: it lists rows without a number itself; `brief`: the next finding lists rows with lost seeds; `place`: the position among all
    questions, lowest first."""

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
    """A question about tables: `say` returns the answer, empty if there is none, and the setting that it is about, which may be empty."""

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
    write: Callable[[float], str] | None = None,
    unit: str = "",
    chance: str = "",
) -> str:
    """Write which rows have the most and the least of a number, including ties; for a single architecture, its number. Nothing is ranked
    with a single seed."""
    headline = by_name(number)
    write = write or partial(write_unit, digits=headline.digits, unit=unit)
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
            said = f"no architecture is ahead in {headline.title}: {write_tie(high, headline, write)}"
        said += f"; not ranked: {list_undecided(alone, headline, write)}" if len(alone) else ""
    said = f"{at(setting, settings)}{said}{count_seeds(known, headline)}."
    return said + (compare_with_chance(known, headline, write, chance) if chance else "")


def ask_range(
    question: str,
    number: str,
    text: str,
    write: Callable[[float], str] | None = None,
    chance: str = "",
    place: int = 1000,
    unit: str = "",
) -> Question:
    """Return the question which architecture has most of a number, and which least. `write` formats the number, by default with the
    digits of its headline and this `unit`, so that a small number does not look like zero."""
    say = partial(say_range, number=number, text=text, write=write, unit=unit, chance=chance)
    return Question(question, (number,), say, place=place)


def write_unit(value: float, digits: int, unit: str) -> str:
    """Write a number with its unit."""
    return f"{write_float(value, digits)} {unit}".rstrip()
