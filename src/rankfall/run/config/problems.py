"""Errors in a configuration, in one line: the key, its value, the fault, the allowed values, and the nearest of them."""

import re
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from rankfall import components
from rankfall.errors import RankfallError, nearest

LONGEST = 60  # characters of a value that are shown
BRANCHES = ("str", "int", "float", "bool", "list", "dict")  # names of pydantic for types of a value
UNKNOWN_KEY = "nothing reads this key"


def problem(
    path: str, fault: str, *, allowed: Iterable[str] = (), near: Iterable[str] = (), name: Any = None, hint: str = ""
) -> RankfallError:
    """Return an error. `fault` names the value and what is wrong with it.

    The message suggests the name in `allowed` that is nearest to `name`, or the nearest in `near` if there are too many to list."""
    listed = list(allowed)
    parts = [f"{path}: {fault}" if path else fault]
    if listed:
        parts.append(f"allowed: {', '.join(listed)}")
    suggested = nearest(name, near or listed)
    if suggested:
        parts.append(f"did you mean {suggested!r}?")
    if hint:
        parts.append(hint)
    return RankfallError("; ".join(parts))


def show_value(value: Any) -> str:
    """Return a value as text for a message."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def unknown_key(path: str, key: Any, allowed: Iterable[str]) -> RankfallError:
    """Return an error for a key that does not exist."""
    if not isinstance(key, str):
        return problem(
            path, f"the key {show_value(key)} is not a word: YAML read it as {_kind(key)}", hint="put it in quotes"
        )
    return problem(f"{path}.{key}" if path else key, UNKNOWN_KEY, allowed=sorted(allowed), name=key)


def wrong_type(path: str, value: Any, expected: str) -> RankfallError:
    """Return an error for a value of the wrong type, with a hint if YAML reads it in an unexpected way."""
    if value is None:
        hint = "write a value, or leave the key out for its default"
        field = path.rpartition(".")[2]
        if field in components.KINDS and "none" in components.names(field):
            hint = "for `no such part` write the word none, which is not YAML's null"
        return problem(path, f"is empty (null), not {expected}", hint=hint)
    hint = ""
    if isinstance(value, bool):
        hint = "write `none` for nothing, and a word that is meant as text in quotes"
    elif isinstance(value, float) and expected == "an integer" and value.is_integer() and abs(value) < 1e15:
        hint = f"write {int(value)}"  # 1e3 and 2.0 are numbers with an empty fraction
    elif isinstance(value, str) and _number(value):
        hint = "take the quotes away"
    return problem(path, f"{show_value(value)} is {_kind(value)}, not {expected}", hint=hint)


def translate(error: ValidationError, prefix: str = "") -> RankfallError:
    """Return the first problem that pydantic reports, in this package's words, with the number of further problems.

    A value that may have several types has an error for each type; the error at the deepest place is reported."""
    places: dict[str, list[ErrorDetails]] = {}
    for detail in error.errors():
        # Without parts that are internal to pydantic, such as a branch of a union.
        parts = [part for part in detail["loc"] if isinstance(part, int) or ("[" not in part and part not in BRANCHES)]
        places.setdefault(".".join(map(str, [*[prefix] * bool(prefix), *parts])), []).append(detail)
    first = next(iter(places))
    same = [path for path in places if f"{path}.".startswith(f"{first}.") or f"{first}.".startswith(f"{path}.")]
    deepest, more = max(same, key=len), len(places) - len(same)
    reported = _translate(deepest, places[deepest])
    return RankfallError(f"{reported} (and {more} more)") if more else reported


def _translate(path: str, details: list[ErrorDetails]) -> RankfallError:
    """Return the error of a value, from the reason for each type that it may have."""
    kinds = {detail["type"]: detail for detail in details}
    value = details[0].get("input")
    if "literal_error" in kinds and (isinstance(value, str) or len(kinds) == 1):
        allowed = re.findall(r"'([^']*)'", kinds["literal_error"]["ctx"]["expected"])
        return problem(path, f"{show_value(value)} is not possible", allowed=allowed, name=value)
    for kind in OTHER_REASONS.keys() & kinds.keys():
        fault, bound = OTHER_REASONS[kind]
        context = kinds[kind].get("ctx", {})
        return problem(path, fault.format(show_value(value)), allowed=[bound.format(**context)] if bound else [])
    expected = [EXPECTED[kind] for kind in kinds if kind in EXPECTED]
    if expected:
        return wrong_type(path, value, " or ".join(dict.fromkeys(expected)))
    return problem(path, details[0]["msg"].removeprefix("Value error, "))


OTHER_REASONS = {  # type of pydantic's error -> fault, and allowed values
    "extra_forbidden": (UNKNOWN_KEY, ""),
    "missing": ("this key is missing", ""),
    "greater_than": ("{} is out of range", "> {gt}"),
    "greater_than_equal": ("{} is out of range", ">= {ge}"),
    "less_than": ("{} is out of range", "< {lt}"),
    "less_than_equal": ("{} is out of range", "<= {le}"),
    "string_too_short": ("{} is an empty text", ""),
    "too_short": ("{} has too few entries", "at least {min_length}"),
    "finite_number": ("{} is not a finite number", ""),
}
EXPECTED = {  # type of pydantic's error -> expected type in words
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "list_type": "a list",
    "tuple_type": "a list",
    "too_long": "a list with fewer entries",
    "component": "a component's name (or a mapping with `name` and options)",
}


def _kind(value: Any) -> str:
    """Return a value's type in words."""
    if isinstance(value, bool):
        return "true or false"
    names = {int: "an integer", float: "a number", str: "text", list: "a list", dict: "a mapping", type(None): "null"}
    return names.get(type(value), f"a {type(value).__name__}")


def _number(text: str) -> bool:
    """Return whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
