"""Errors in a configuration, one line each: the key, its value, what is wrong, what is allowed, and what was probably meant."""

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from rankfall import components
from rankfall.errors import RankfallError, nearest

LONGEST = 60  # characters of a value that are shown
UNKNOWN_KEY = "nothing reads this key"


def problem(path: str, what: str, *, allowed: Iterable[str] = (), given: Any = None, hint: str = "") -> RankfallError:
    """Return an error. `what` is the value and what is wrong with it. `given` is the name for which the nearest allowed name is
    suggested."""
    listed = list(allowed)
    parts = [f"{path}: {what}" if path else what]
    if listed:
        parts.append(f"allowed: {', '.join(listed)}")
    near = nearest(given, listed)
    if near:
        parts.append(f"did you mean {near!r}?")
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
    return problem(f"{path}.{key}" if path else key, UNKNOWN_KEY, allowed=sorted(allowed), given=key)


def wrong_type(path: str, value: Any, wanted: str) -> RankfallError:
    """Return an error for a value of the wrong type, with a hint if YAML reads it in an unexpected way."""
    if value is None:
        hint = "write a value, or leave the key out for its default"
        if _can_be_none(path.rpartition(".")[2]):
            hint = "for `no such part` write the word none, which is not YAML's null"
        return problem(path, f"is empty (null), not {wanted}", hint=hint)
    hint = ""
    if isinstance(value, bool):
        hint = "write `none` for nothing, and a word that is meant as text in quotes"
    elif isinstance(value, float) and wanted == "an integer" and value.is_integer() and abs(value) < 1e15:
        hint = f"write {int(value)}"  # 1e3 and 2.0 are numbers with an empty fraction
    elif isinstance(value, str) and _number(value):
        hint = "take the quotes away"
    return problem(path, f"{show_value(value)} is {_kind(value)}, not {wanted}", hint=hint)


def translate(error: ValidationError, prefix: str = "") -> RankfallError:
    """Return the first problem that pydantic reports, in this package's words, with the number of further problems."""
    details = error.errors()
    first = _translate(details[0], prefix)
    if len(details) == 1:
        return first
    return RankfallError(f"{first} (and {len(details) - 1} more)")


def _translate(detail: ErrorDetails, prefix: str) -> RankfallError:
    path = ".".join(str(part) for part in ([prefix] if prefix else []) + [p for p in detail["loc"] if not _internal(p)])
    kind, value, context = detail["type"], detail.get("input"), detail.get("ctx", {})
    if kind in ("extra_forbidden", "missing"):
        what = UNKNOWN_KEY if kind == "extra_forbidden" else "this key is missing"
        return problem(path, what)
    if kind == "literal_error":
        return problem(path, f"{show_value(value)} is not possible", allowed=[context["expected"].replace("'", "")])
    if kind in ("greater_than", "greater_than_equal", "less_than", "less_than_equal"):
        sign = {"greater_than": ">", "greater_than_equal": ">=", "less_than": "<", "less_than_equal": "<="}[kind]
        limit = context.get("gt", context.get("ge", context.get("lt", context.get("le"))))
        return problem(path, f"{show_value(value)} is out of range", allowed=[f"{sign} {limit}"])
    if kind == "string_too_short":
        return problem(path, "'' is an empty text")
    if kind == "too_short":
        return problem(path, f"{show_value(value)} has too few entries", allowed=[f"at least {context['min_length']}"])
    if kind == "finite_number":
        return problem(path, f"{show_value(value)} is not a finite number")
    wanted = WANTED.get(kind)
    if wanted:
        return wrong_type(path, value, wanted)
    return problem(path, detail["msg"].removeprefix("Value error, "))


WANTED = {
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "string_type": "a word",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "list_type": "a list",
    "component": "a component's name (or a mapping with `name` and options)",
}


def _can_be_none(field: str) -> bool:
    """Return whether a kind has a component `none`."""
    return field in components.KINDS and "none" in components.names(field)


def _internal(part: int | str) -> bool:
    """Return whether a part of pydantic's location is internal, such as a branch of a union."""
    return isinstance(part, str) and ("[" in part or part in ("str", "list", "dict"))


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    names = {int: "an integer", float: "a number", str: "text", list: "a list", dict: "a mapping", type(None): "null"}
    return names.get(type(value), f"a {type(value).__name__}")


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
