"""Matching of values against filters, by the same rule for fields of cells and for columns of tables."""

import json
import re
from collections.abc import Mapping
from typing import Any

from rankfall.design import Component

OPTION = re.compile(r"(\w+)=((?:[^,\[\]{}\"]|\[[^]]*\]|\{[^}]*\}|\"[^\"]*\")+)")


def matches(found: Any, wanted: Any) -> bool:
    """Return whether a field of a cell has a wanted value.

    A wanted component is a name, or a name with some options; the other options may have any value.
    """
    if isinstance(found, Component):
        name, options = _name_and_options(wanted)
        return name == found.name and all(
            key in found.options and found.options[key] == options[key] for key in options
        )
    if isinstance(found, float):
        wanted = _number(wanted)
    return type(found) is type(wanted) and bool(found == wanted)


def matches_in_table(found: Any, wanted: Any) -> bool:
    """Return whether a value of a table matches. Tables have components as text, `scaled(scale=0.1)`, and numbers of NumPy."""
    if isinstance(found, str):
        name, options = _name_and_options(found)
        return matches(Component(name, options), wanted)
    return matches(found.item() if hasattr(found, "item") else found, wanted)


def parts(value: Any) -> tuple[str, dict[str, str]]:
    """Return the name of a component and its options as JSON, from a mapping or text. Other values give their text and no options."""
    if isinstance(value, Mapping):
        return value["name"], {key: json.dumps(option) for key, option in value.items() if key != "name"}
    name, _, rest = str(value).partition("(")
    return name, {key: option.strip() for key, option in OPTION.findall(rest.removesuffix(")"))}


def as_list(value: Any) -> list[Any]:
    """Return a list as it is and any other value as a list of one item."""
    return value if isinstance(value, list) else [value]


def _name_and_options(value: Any) -> tuple[Any, dict[str, Any]]:
    if isinstance(value, Mapping):
        return value.get("name"), {key: option for key, option in value.items() if key != "name"}
    if not isinstance(value, str):
        return value, {}
    name, options = parts(value)
    return name, {key: _from_json(option) for key, option in options.items()}


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _number(value: Any) -> Any:
    """Convert a value to float if possible, including text such as 1e-5 (which YAML 1.1 reads as text); return others unchanged."""
    try:
        return value if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return value
