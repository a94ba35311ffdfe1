"""Words and numbers for readers: short labels of components in the form of tables, `scaled(scale=0.1)`, names of real models and of their
measurements, and numbers with fixed decimals, in which a number that is not zero never looks like zero.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import copysign, inf, nextafter
from typing import Any

from rankfall.annotations import DataFrame
from rankfall.errors import RankfallError
from rankfall.filters import parts
from rankfall.report.looks import label


def labels(values: Iterable[Any]) -> dict[Any, str]:
    """Return value -> short label, with different labels for different values. A label contains an option only if components of the same
    name differ in it. If they differ in one number, the label has the number alone; if they differ in several, it has the names and values
    of those that are not the most frequent value."""
    named = {value: parts(value) for value in values}
    result = {}
    for value, (name, options) in named.items():
        same_name = [other for other_name, other in named.values() if other_name == name]
        differ = [key for key in options if len({other.get(key) for other in same_name}) > 1]
        numbers = [key for key in differ if options[key] not in ("true", "false", "null")]
        shown = [key for key in differ if options[key] == "true"]
        if len(numbers) < 2:
            shown += [options[key] for key in numbers]
        else:
            usual = {key: Counter(other.get(key) for other in same_name).most_common(1)[0][0] for key in numbers}
            shown += [f"{key} {options[key]}" for key in numbers if options[key] != usual[key]]
        result[value] = " ".join([label(name), *shown])
    counts = Counter(result.values())
    return {value: text if counts[text] == 1 else str(value) for value, text in result.items()}


def join(words: Iterable[str]) -> str:
    """Join words as in "a, b and c"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def many(count: int, noun: str) -> str:
    """Return a count with its noun, as in "1 seed" and "2 seeds"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def span_counts(counts: Iterable[float], noun: str) -> str:
    """Return the range of counts with their noun, as in "3 to 5 seeds"; empty without counts."""
    numbers = sorted(map(int, counts))
    return f"{numbers[0]} to " * (numbers[0] < numbers[-1]) + many(numbers[-1], noun) if numbers else ""


def few(words: Sequence[str], most: int) -> list[str]:
    """Return the first words, followed by the number of the others."""
    return [*words[:most], *[f"{len(words) - most} more"] * (len(words) > most)]


def order(text: str) -> list[tuple[float, str]]:
    """Return a sort key that orders words alphabetically and numbers by size."""
    return [
        (float(part), "") if re.fullmatch(r"\d[\d.]*(e[+-]?\d+)?", part) else (-1.0, part)
        for part in re.split(r"[ ,]+", text)
    ]


FLOOR = 16 * 2.0**-52  # the rounding floor of a relative residual in float64
AT_FLOOR = "floor"
LARGE = 1e4  # numbers from here on are written without decimals


def write_float(value: float, digits: int, beside: float = 0.0) -> str:
    """Write a number with `digits` decimals, or without decimals from 10,000 on. 0.125 becomes 0.13, as in the page's script. A number that
    would look like zero is written with a power of ten, 2.0e-6. `beside`: the mean of which it is the deviation, which may be large."""
    if value != value:
        return "nan"
    digits = 0 if max(abs(value), abs(beside)) >= LARGE else digits
    is_whole = abs(value) >= 2**52  # has no half, and its neighbour is another whole number
    text = f"{value if is_whole else nextafter(value, copysign(inf, value)):,.{digits}f}"
    if text.strip("-0."):
        return text
    return re.sub(r"e-0*", "e-", f"{value:.1e}") if value else text.removeprefix("-")


def write_residual(value: float, digits: int = 3, noise: float = 0.0) -> str:
    """Write a relative residual, as `floor` if it is below the resolution of float64 or rounding noise in all samples (`noise`: the share
    of samples)."""
    return AT_FLOOR if noise == 1 or value <= FLOOR else write_float(value, digits)


# Columns besides model and phase in which measurements differ -> how a value is written.
BESIDE: dict[str, Callable[[Any], str]] = {
    "definition": str, "text": "text {}".format, "tokenizer": "tokenizer {}".format, "length": "{} tokens".format, "dtype": str,
    "revision": "revision {}".format,
}  # fmt: skip


def short(model: str) -> str:
    """Return the last part of a hub name or folder."""
    return model.rstrip("/").rsplit("/", 1)[-1]


def name_models(models: Iterable[str]) -> dict[str, str]:
    """Return model -> its label, or the label of the last part of its name; the whole name if another of these models has the same last
    part."""
    names = list(dict.fromkeys(models))
    counts = Counter(map(short, names))
    return {
        name: label(name) if label(name) != name or counts[short(name)] > 1 else label(short(name)) for name in names
    }


def name_measurements(table: DataFrame, axis: str = "") -> list[str]:
    """Return a name for each row: model and phase, the definition if it is not the default, and the columns in which measurements of a
    model and phase differ, so that different measurements have different names. `axis`: the column on an axis of the figure, which does
    not distinguish lines."""
    models = name_models(table.model)
    varied = [
        name
        for name in BESIDE
        if name in table and name != axis and (table.groupby(["model", "phase"])[name].nunique(dropna=False) > 1).any()
    ]
    names = []
    for row in table.to_dict("records"):
        differ = [name for name in varied if name != "definition"]
        if row.get("definition", "clean") != "clean":
            differ = ["definition", *differ]
        details = [BESIDE[name](row[name]) for name in differ if row[name] == row[name] and row[name] is not None]
        names.append(f"{models[row['model']]}, {row['phase']}" + (f" ({', '.join(details)})" if details else ""))
    return names


def select_models(table: DataFrame, figure: str, models: list[str] | None) -> DataFrame:
    """Return the rows of these models, or of all if there are none; a model that was not measured is an error."""
    measured = sorted(table.model.unique())
    for model in models or []:
        if model not in measured:
            raise RankfallError(
                f"figure {figure}: model {model} was not measured; there is: {', '.join(measured) or 'nothing'}"
            )
    return table[table.model.isin(models)] if models else table
