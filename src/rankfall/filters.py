"""Matching of values against filters, by the same rule for fields of cells and for columns of tables."""

import json
import re
from collections.abc import Mapping
from typing import Any

from rankfall.design import Component

OPTION = re.compile(r"(\w+)=((?:[^,\[\]{}\"]|\[[^]]*\]|\{[^}]*\}|\"[^\"]*\")+)")


def matches(value: Any, wanted: Any) -> bool:
    """Return whether a field of a cell has a wanted value.

    A wanted component is a name, or a name with some options; the other options may have any value.
    """
    if isinstance(value, Component):
        name, options = _name_and_options(wanted)
        return name == value.name and all(
            key in value.options and value.options[key] == options[key] for key in options
        )
    if isinstance(value, float):
        wanted = as_number(wanted)
    return type(value) is type(wanted) and bool(value == wanted)


def matches_in_table(value: Any, wanted: Any) -> bool:
    """Return whether a value of a table matches. Tables have components as text, `scaled(scale=0.1)`, and numbers of NumPy."""
    if isinstance(value, str):
        name, options = _name_and_options(value)
        return matches(Component(name, options), wanted)
    return matches(value.item() if hasattr(value, "item") else value, wanted)


def parts(value: Any) -> tuple[str, dict[str, str]]:
    """Return the name of a component and its options as JSON, from a mapping or text. Other values give their text and no options."""
    if isinstance(value, Mapping):
        return value["name"], {key: json.dumps(option) for key, option in value.items() if key != "name"}
    name, _, arguments = str(value).partition("(")
    return name, {key: option.strip() for key, option in OPTION.findall(arguments.removesuffix(")"))}


def as_list(value: Any) -> list[Any]:
    """Return a list as it is and any other value as a list of one item."""
    return value if isinstance(value, list) else [value]


def _name_and_options(value: Any) -> tuple[Any, dict[str, Any]]:
    """Return the name and options of a wanted component. A value that is no component is returned as the name."""
    if isinstance(value, Mapping):
        return value.get("name"), {key: option for key, option in value.items() if key != "name"}
    if not isinstance(value, str):
        return value, {}
    name, options = parts(value)
    return name, {key: _from_json(option) for key, option in options.items()}


def _from_json(text: str) -> Any:
    """Return a text parsed as JSON, or the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def as_number(value: Any) -> Any:
    """Convert a value to float if possible, including text such as 1e-5 (which YAML 1.1 reads as text); return others unchanged."""
    try:
        return value if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return value
