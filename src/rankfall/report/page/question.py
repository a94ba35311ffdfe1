"""Questions that the page answers in one short sentence, from the scorecard or from other tables. A quantity declares its questions as
`SENTENCES` in `shown.py` of its folder."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from rankfall.annotations import DataFrame, Series
from rankfall.report.headlines import Headline, by_name
from rankfall.report.labels import AT_FLOOR, few, join, write_float
from rankfall.report.part_numbers import is_missing
from rankfall.report.ranking import (
    UNDECIDED,
    find_extreme,
    read_seeds,
    say_span,
    say_standing,
    sides,
    split_decidable,
    weigh,
    with_number,
)
from rankfall.report.score_text import name_row, write_value
from rankfall.report.settings import Setting

Read = Callable[[str], Any]  # name -> table, or None if the run does not have it
Write = Callable[[float], str]
# Rows of the scorecard at a setting -> sentence, empty if there is no finding.
Say = Callable[[DataFrame, Setting], str]
MOST = 25  # words of an answer
NAMED = 3  # architectures that an answer names together
ORDINARY = ("none", "nothing", "a guess")  # names that a sentence would read as words


@dataclass(frozen=True)
class Question:
    """A question about the networks of a setting. `say` receives the rows of the scorecard for which one of the numbers was measured.
    `place`: the position among all questions, lowest first."""

    name: str
    numbers: tuple[str, ...]
    say: Say
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


def ask_range(
    question: str, number: str, text: str, write: Write | None = None, place: int = 1000, unit: str = ""
) -> Question:
    """Return the question which architecture has most of a number, and which least. `text` begins the answer: `most tokens are found in`.
    `write` formats the number, by default with the digits of its headline and this `unit`, so that a small number does not look like
    zero."""
    return Question(question, (number,), partial(say_range, number=number, text=text, write=write, unit=unit), place)


def say_range(
    rows: DataFrame,
    setting: Setting,
    *,
    number: str,
    text: str,
    write: Write | None = None,
    unit: str = "",
    more: str = "",
) -> str:
    """Write which rows have the most and the least of a number, and `more`. Without a difference there is no finding, and with a single
    seed nothing is ranked."""
    headline = by_name(number)
    write = write or (lambda value: f"{write_float(value, headline.digits)} {unit}".rstrip())
    measured = with_number(rows, headline, setting)
    ranked, alone = split_decidable(measured, headline)
    if len(measured) < 2:
        return fit(f"{headline.title}: {write_group(measured, headline, write)}", more) if len(measured) else ""
    if not len(ranked):
        ordered = alone.sort_values(headline.name, ascending=False)
        phrases = [f"{quote_name(row)} {write_plain(row, headline, write)}" for _, row in ordered.iterrows()]
        return fit(f"{headline.title}: {list_names(phrases)} ({UNDECIDED})")
    high, low = (find_extreme(ranked, headline, setting, most=most) for most in (True, False))
    if len(high) == len(ranked) > 1:
        return ""
    start = f"{text} {write_group(high, headline, write)}"
    least = f", least in {write_group(low, headline, write)}"
    if not is_short(start + least):
        least = f", least in {list_names(sorted(quote_name(row) for _, row in low.iterrows()))}"
    if set(low.index) & set(high.index):
        least = ""
    chances = measured[f"{headline.name}_chance"].dropna() if "chance" in headline.beside else ()
    chance = f"; chance: {say_span(chances, write)}" if len(chances) else ""
    return fit(start, least, chance, more)


def fit(first: str, *others: str) -> str:
    """Join the parts of a sentence, without those that would make it longer than `MOST` words."""
    sentence = f"{first[:1].upper()}{first[1:]}"
    for part in others:
        sentence += part if is_short(sentence + part) else ""
    return f"{sentence}."


def is_short(text: str) -> bool:
    """Return whether a text is short enough for an answer."""
    return len(text.split()) <= MOST


def write_group(rows: DataFrame, headline: Headline, write: Write) -> str:
    """Write names and numbers of rows without a significant difference: `A (12% ± 1%)`, or `A and B (11% to 13%, a tie at chance)`."""
    members = [row for _, row in rows.sort_values(headline.name).iterrows()]
    if len(members) == 1:
        number = write_number(members[0], headline, write)
    else:
        number = " to ".join(dict.fromkeys(write_plain(row, headline, write) for row in (members[0], members[-1])))
    positions = {find_side(row, headline) for row in members}
    side = positions.pop() if len(positions) == 1 else ""
    notes = [say_standing(rows, headline)] * (len(members) > 1) + [f"{side} chance"] * (side in ("at", "below"))
    brackets = f"{number}, {' '.join(notes)}" if notes else number
    return f"{list_names(sorted(quote_name(row) for row in members))} ({brackets})"


def write_number(row: Series, headline: Headline, write: Write) -> str:
    """Write a number with its deviation over seeds, if visible; `floor` for rounding noise."""
    number, deviation = write_plain(row, headline, write), row[f"{headline.name}_deviation"]
    if number == AT_FLOOR or is_missing(deviation):
        return number
    logs = headline.unit == "log10"  # the deviation is that of exponents
    spread = f"{deviation:,.{1 if deviation < 10 else 0}f}" if logs else write(deviation)
    if not spread.strip("0.,% ") or spread == write(0.0) or ("e-" in spread and "e-" not in number):
        return number
    return f"{number} ± {spread}{' in log10' * logs}"


def write_plain(row: Series, headline: Headline, write: Write) -> str:
    """Write a number without its deviation."""
    at_floor = "floor" in headline.beside and write_value(row, headline) == AT_FLOOR
    return AT_FLOOR if at_floor else write(row[headline.name])


def find_side(row: Series, headline: Headline) -> str:
    """Return on which side of chance a number is: above, below, or at, if the interval over its seeds of what it has over chance contains
    zero. Each seed has its own chance, since each has its own test set. It is empty for a single seed, which is undecided, and without
    chances."""
    if "chance" not in headline.beside or headline.components:
        return ""
    values = weigh(row.to_frame().T, headline).values
    chances = values.columns.to_series().map(read_seeds(row[f"{headline.name}_chance_each"]))
    (side,) = sides(values.sub(chances, axis=1), values.abs().max(axis=1))
    return "" if side != side else {0.0: "at", 1.0: "above", -1.0: "below"}[float(side)]


def quote_name(row: Series) -> str:
    """Return the name of a row, in quotes if a sentence would read it as an ordinary word: `none is at that`."""
    text = name_row(row)
    return f"'{text}'" if text.lower() in ORDINARY else text


def list_names(names: list[str], most: int = NAMED) -> str:
    """Join the first names, followed by the number of the others."""
    return join(few(names, most))


def percent(value: float) -> str:
    """Write a share in percent."""
    return f"{write_float(100 * value, 1).removesuffix('.0')}%"
