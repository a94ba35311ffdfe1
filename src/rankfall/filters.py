"""Whether a value is what a filter asks for: one rule for the fields of cells and for the columns of tables."""

import json
import re
from collections.abc import Mapping
from typing import Any

from rankfall.design import Component

OPTION = re.compile(r"(\w+)=((?:[^,\[\]{}\"]|\[[^]]*\]|\{[^}]*\}|\"[^\"]*\")+)")


def matches(found: Any, wanted: Any) -> bool:
    """Whether a field of a cell has a wanted value.

    A component is wanted by its name, or by its name and some of its options; the other options may have any value.
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
    """The same for a value of a table, where components are text, `scaled(scale=0.1)`, and numbers are numpy's."""
    if isinstance(found, str):
        name, options = _name_and_options(found)
        return matches(Component(name, options), wanted)
    return matches(found.item() if hasattr(found, "item") else found, wanted)


def parts(value: Any) -> tuple[str, dict[str, str]]:
    """Name and options, each option as JSON, of a component as a table or a configuration has it; of anything else its text."""
    if isinstance(value, Mapping):
        return value["name"], {key: json.dumps(option) for key, option in value.items() if key != "name"}
    name, _, rest = str(value).partition("(")
    return name, {key: option.strip() for key, option in OPTION.findall(rest.removesuffix(")"))}


def as_list(value: Any) -> list[Any]:
    """An option that may be one value or a list of them."""
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
    """1 and the text 1e-5, as YAML 1.1 reads it, as the numbers they mean; anything else as it is."""
    try:
        return value if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return value
