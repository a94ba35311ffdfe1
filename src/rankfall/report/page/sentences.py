"""Parts of sentences about rows of the scorecard: names, numbers with their uncertainty, ties, and comparisons with chance."""

from collections.abc import Callable, Sequence

from rankfall.annotations import DataFrame, Series
from rankfall.report.headlines import Headline
from rankfall.report.labels import join, many
from rankfall.report.part_numbers import is_missing
from rankfall.report.ranking import UNDECIDED, read_seeds, say_standing, sides, weigh
from rankfall.report.score_text import name_row, write_value
from rankfall.report.settings import Setting, say_setting
from rankfall.report.written import AT_FLOOR, write_float

Write = Callable[[float], str]
NAMED = 6
WORDS = ("none", "nothing", "a guess")


def name(row: Series) -> str:
    """Return the name of a row, in quotes if a sentence would read it as an ordinary word: `none is at that`."""
    called = name_row(row)
    return f"'{called}'" if called.lower() in WORDS else called


def is_are(count: int) -> str:
    return "is" if count == 1 else "are"


def percent(value: float) -> str:
    return f"{write_float(100 * value, 1).removesuffix('.0')}%"


def at(setting: Setting, settings: int) -> str:
    """Write the setting of a sentence, and the number of settings if it was chosen from several."""
    return f"At {say_setting(setting.label)}{f' (of {settings} settings, one with most architectures)' if settings > 1 else ''}: "


def count_seeds(rows: DataFrame, headline: Headline) -> str:
    """Write the number of seeds of these rows' means: the most frequent count, and the rows that have another."""
    counts = rows[f"{headline.name}_seeds"].astype(int)
    common = int(counts.mode().max())
    others = [f"{name(row)} {row[f'{headline.name}_seeds']:.0f}" for _, row in rows[counts != common].iterrows()]
    said = (
        f"one {headline.counted}"
        if counts.max() == 1
        else f"{'means over' if headline.counted == 'seed' else 'medians of'} {many(common, headline.counted)}"
    )
    return f" ({said}{f'; {list_names(others)}' if others else ''})"


def say_lost(rows: DataFrame, headlines: Sequence[Headline], *, reasons: bool) -> str:
    """Write which architectures of a setting have lost seeds, or (with `reasons`) have none of these numbers, so that none is omitted
    silently. Errors of failed jobs are long and are left to the list of cells on the page and to `rankfall status`."""
    said = ""
    for _, row in rows.iterrows():
        lost = next((row[f"{headline.name}_lost"] for headline in headlines if row[f"{headline.name}_lost"]), "")
        if lost:
            said += f" Seeds of {name(row)} are lost: {lost.partition(':')[0] if ' failed of ' in lost else lost}."
    without = rows[rows[[headline.name for headline in headlines]].isna().all(axis=1)]
    return said + (say_reasons(without, headlines[0]) if reasons else "")


def say_reasons(without: DataFrame, headline: Headline) -> str:
    """Write why these rows have no number, except rows whose seeds are all lost, which `say_lost` names."""
    named: dict[str, list[str]] = {}
    for _, row in without.iterrows():
        if row[f"{headline.name}_reason"] != row[f"{headline.name}_lost"]:
            named.setdefault(row[f"{headline.name}_reason"], []).append(name(row))
    return "".join(f" There is none of {list_names(names)}: {reason}." for reason, names in named.items())


def write_number(row: Series, headline: Headline, write: Write) -> str:
    """Write a number with its deviation over seeds, if visible; `floor` for rounding noise."""
    number, deviation = write_plain(row, headline, write), row[f"{headline.name}_deviation"]
    if number == AT_FLOOR:
        return number
    logs = headline.unit == "log10"  # the deviation is that of exponents
    plain = (
        "{:,.1f}".format
        if logs and not is_missing(deviation) and deviation < 10
        else "{:,.0f}".format
        if logs
        else write
    )
    if is_missing(deviation) or plain(deviation) == plain(0.0) or ("e-" in plain(deviation) and "e-" not in number):
        return number
    return f"{number} ± {plain(deviation)}{' in log10' * logs}"


def write_plain(row: Series, headline: Headline, write: Write) -> str:
    """Write a number without its deviation."""
    at_floor = "floor" in headline.beside and write_value(row, headline) == AT_FLOOR
    return AT_FLOOR if at_floor else write(row[headline.name])


def write_tie(rows: DataFrame, headline: Headline, write: Write) -> str:
    """Write names and numbers of rows without a significant difference: `A (12%)`, or `A, B and C (11% to 13%, a tie)`."""
    if len(rows) == 1:
        return f"{name(rows.iloc[0])} ({write_number(rows.iloc[0], headline, write)})"
    ordered = rows.sort_values(headline.name)
    least, most = (write_plain(ordered.iloc[end], headline, write) for end in (0, -1))
    named = list_names(sorted(name(row) for _, row in rows.iterrows()))
    return f"{named} ({least if least == most else f'{least} to {most}'}, {say_standing(rows, headline)})"


def list_undecided(rows: DataFrame, headline: Headline, write: Write) -> str:
    """Write the numbers of rows that are not ranked, the largest first: `A 51%, B 50% (one seed: not decided)`."""
    ordered = rows.sort_values(headline.name, ascending=False)
    each = [f"{name(row)} {write_number(row, headline, write)}" for _, row in ordered.iterrows()]
    return f"{list_names(each)} ({UNDECIDED})"


def one_in(chance: float) -> str:
    """Write a chance level as 1 in n, if it is exactly that."""
    whole = round(1 / chance) if chance > 0 else 0
    return f" (one in {whole})" if whole > 1 and abs(chance * whole - 1) < 1e-9 else ""


def find_side(row: Series, headline: Headline) -> str:
    """Return on which side of chance a number is: above, below, or at, if the interval over its seeds of what it has over chance contains
    zero. Each seed has its own chance, since each has its own test set. It is empty for a single seed, which is undecided."""
    values = weigh(row.to_frame().T, headline).values
    chances = values.columns.to_series().map(read_seeds(row[f"{headline.name}_chance_each"]))
    (side,) = sides(values.sub(chances, axis=1), values.abs().max(axis=1))
    return "" if side != side else {0.0: "at", 1.0: "above", -1.0: "below"}[float(side)]


def compare_with_chance(rows: DataFrame, headline: Headline, write: Write, said: str) -> str:
    """Write a sentence on the chance level, in the words of `said`, and on the rows at or below it."""
    known = rows[rows[f"{headline.name}_chance"].notna()]
    if not len(known):
        return ""
    chances = known[f"{headline.name}_chance"]
    least, most = write(chances.min()), write(chances.max())
    level = f"{least}{one_in(float(chances.iloc[0]))}" if least == most else f"{least} to {most}"
    sides: dict[str, list[str]] = {}
    for _, row in known.iterrows():
        sides.setdefault(find_side(row, headline), []).append(name(row))
    parts = [
        f"{list_names(sides[side])} {is_are(len(sides[side]))} {side} that" for side in ("at", "below") if side in sides
    ]
    return f" {said.format(level)}{''.join(f'; {part}' for part in parts)}."


def list_names(names: list[str], most: int = NAMED) -> str:
    """Join the first names, followed by the number of the others."""
    return join(names[:most] + ([f"{len(names) - most} more"] if len(names) > most else []))
