"""Words of sentences about rows of the scorecard: names, numbers with their uncertainty, ties, and what chance would give."""

from collections.abc import Callable, Sequence

from rankfall.annotations import DataFrame, Series
from rankfall.report.headlines import Headline
from rankfall.report.labels import join, many
from rankfall.report.part_numbers import is_missing
from rankfall.report.score_text import name_row
from rankfall.report.settings import Setting, say_setting

Write = Callable[[float], str]
NAMED = 6
WORDS = ("none", "nothing", "a guess")


def name(row: Series) -> str:
    """As it is called, in quotes where a sentence would read it as a word of its own: `none is at that`."""
    called = name_row(row)
    return f"'{called}'" if called.lower() in WORDS else called


def is_are(count: int) -> str:
    return "is" if count == 1 else "are"


def percent(value: float) -> str:
    return f"{value:.1%}".replace(".0%", "%").replace("-0%", "0%")


def at(setting: Setting, settings: int) -> str:
    """The setting that a sentence is about, and of how many it was chosen; one: it was not."""
    return f"At {say_setting(setting.label)}{f' (of {settings} settings, one with most architectures)' if settings > 1 else ''}: "


def count_seeds(rows: DataFrame, headline: Headline) -> str:
    """How many seeds the numbers of these rows are means of: the commonest count, and which rows have another."""
    counts = rows[f"{headline.name}_seeds"].astype(int)
    common = int(counts.mode().max())
    others = [f"{name(row)} {row[f'{headline.name}_seeds']:.0f}" for _, row in rows[counts != common].iterrows()]
    said = f"one {headline.counted}" if counts.max() == 1 else f"means over {many(common, headline.counted)}"
    return f" ({said}{f'; {list_names(others)}' if others else ''})"


def say_lost(rows: DataFrame, headlines: Sequence[Headline], *, reasons: bool) -> str:
    """Which architectures of a setting have lost seeds, or (with `reasons`) have none of these numbers, so that none is left out unsaid.
    What made a job fail is long, and said once, where the page and `rankfall status` list the cells."""
    said = ""
    for _, row in rows.iterrows():
        lost = next((row[f"{headline.name}_lost"] for headline in headlines if row[f"{headline.name}_lost"]), "")
        if lost:
            said += f" Seeds of {name(row)} are lost: {lost.partition(':')[0] if ' failed of ' in lost else lost}."
    without = rows[rows[[headline.name for headline in headlines]].isna().all(axis=1)]
    return said + (say_reasons(without, headlines[0]) if reasons else "")


def say_reasons(without: DataFrame, headline: Headline) -> str:
    """Why each of these rows has no number; rows whose seeds are all lost have been named."""
    named: dict[str, list[str]] = {}
    for _, row in without.iterrows():
        if row[f"{headline.name}_reason"] != row[f"{headline.name}_lost"]:
            named.setdefault(row[f"{headline.name}_reason"], []).append(name(row))
    return "".join(f" There is none of {list_names(names)}: {reason}." for reason, names in named.items())


def write_number(row: Series, headline: Headline, write: Write) -> str:
    """With its deviation over seeds, where that can be seen."""
    value, deviation = row[headline.name], row[f"{headline.name}_deviation"]
    logs = headline.unit == "log10"  # whose deviation is one of exponents
    plain = (
        "{:,.1f}".format
        if logs and not is_missing(deviation) and deviation < 10
        else "{:,.0f}".format
        if logs
        else write
    )
    spread = (
        "" if is_missing(deviation) or plain(deviation) == plain(0.0) else f" ± {plain(deviation)}{' in log10' * logs}"
    )
    return f"{write(value)}{spread}"


def write_tie(rows: DataFrame, headline: Headline, write: Write) -> str:
    """Names and numbers of rows that tie: `A (12%)`, or `A, B and C (11% to 13%, a tie)`."""
    if len(rows) == 1:
        return f"{name(rows.iloc[0])} ({write_number(rows.iloc[0], headline, write)})"
    values = rows[headline.name]
    least, most = write(values.min()), write(values.max())
    named = list_names(sorted(name(row) for _, row in rows.iterrows()))
    return f"{named} ({least if least == most else f'{least} to {most}'}, a tie)"


def one_in(chance: float) -> str:
    """1 in n, where that is what it is."""
    whole = round(1 / chance) if chance > 0 else 0
    return f" (one in {whole})" if whole > 1 and abs(chance * whole - 1) < 1e-9 else ""


def find_side(row: Series, headline: Headline, write: Write) -> str:
    """above, below, or at: where a number is no farther from chance than its seeds are from each other, or the same as written."""
    value, chance = row[headline.name], row[f"{headline.name}_chance"]
    deviation = row[f"{headline.name}_deviation"]
    near = 0.0 if is_missing(deviation) else deviation
    if abs(value - chance) <= near or write(value) == write(chance):
        return "at"
    return "above" if value > chance else "below"


def compare_with_chance(rows: DataFrame, headline: Headline, write: Write, said: str) -> str:
    """A sentence: what chance is, in the words of `said`, and which of these rows are at it or below."""
    known = rows[rows[f"{headline.name}_chance"].notna()]
    if not len(known):
        return ""
    chances = known[f"{headline.name}_chance"]
    least, most = write(chances.min()), write(chances.max())
    level = f"{least}{one_in(float(chances.iloc[0]))}" if least == most else f"{least} to {most}"
    sides: dict[str, list[str]] = {}
    for _, row in known.iterrows():
        sides.setdefault(find_side(row, headline, write), []).append(name(row))
    parts = [
        f"{list_names(sides[side])} {is_are(len(sides[side]))} {side} that" for side in ("at", "below") if side in sides
    ]
    return f" {said.format(level)}{''.join(f'; {part}' for part in parts)}."


def list_names(names: list[str], most: int = NAMED) -> str:
    """The first of them, and how many more there are."""
    return join(names[:most] + ([f"{len(names) - most} more"] if len(names) > most else []))
