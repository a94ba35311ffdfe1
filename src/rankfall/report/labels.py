"""What a table says of a component, `scaled(scale=0.1)`, as a figure's label and in a figure's filter."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

OPTION = re.compile(r"(\w+)=((?:[^,\[\]{}\"]|\[[^]]*\]|\{[^}]*\}|\"[^\"]*\")+)")


def parts(value: Any) -> tuple[str, dict[str, str]]:
    """Name and options, from the text of a table or from a value of a configuration."""
    if isinstance(value, dict):
        return value["name"], {key: json.dumps(option) for key, option in value.items() if key != "name"}
    name, _, rest = str(value).partition("(")
    return name, {key: option.strip() for key, option in OPTION.findall(rest.removesuffix(")"))}


def matches(value: Any, wanted: Any) -> bool:
    """Whether a value is what a filter asks for; options that the filter does not name may be anything."""
    (name, options), (wanted_name, asked) = parts(value), parts(wanted)
    return name == wanted_name and all(options.get(key) == option for key, option in asked.items())


def labels(values: Iterable[Any]) -> dict[Any, str]:
    """Short labels that tell these values apart: an option stands in one only if components of that name differ in it, and with its
    name if they differ in several; then what most of them have goes without saying."""
    found = {value: parts(value) for value in values}
    result = {}
    for value, (name, options) in found.items():
        alike = [other for other_name, other in found.values() if other_name == name]
        differ = [key for key in options if len({other.get(key) for other in alike}) > 1]
        numbers = [key for key in differ if options[key] not in ("true", "false", "null")]
        said = [key for key in differ if options[key] == "true"]
        if len(numbers) < 2:
            said += [options[key] for key in numbers]
        else:
            usual = {key: Counter(other.get(key) for other in alike).most_common(1)[0][0] for key in numbers}
            said += [f"{key} {options[key]}" for key in numbers if options[key] != usual[key]]
        result[value] = " ".join([name, *said])
    return result


def order(label: str) -> list[tuple[float, str]]:
    """Sorts labels as people do, numbers by size."""
    return [
        (float(part), "") if re.fullmatch(r"\d[\d.]*(e[+-]?\d+)?", part) else (-1.0, part)
        for part in re.split(r"[ ,]+", label)
    ]
