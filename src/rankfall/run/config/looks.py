"""Labels and colours of a configuration: checks that the names exist and that labels and colours can be displayed."""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rankfall import components
from rankfall.design import Architecture, Component, Training, parts
from rankfall.errors import nearest
from rankfall.run.config.problems import problem, show_value
from rankfall.run.config.types import Config

HEX = re.compile(r"#[0-9a-fA-F]{6}")
LONGEST = 60  # letters of a label: a legend has no room for more
KINDS = ("tasks", "architectures", "trainings")
CUTS = ("SAN", "SAN+MLP", "SAN+skip", "transformer", "SAN+bare MLP")  # parts to which a model can be cut


def check_labels(config: Config) -> dict[str, str]:
    """Return name -> label. Raise if a name does not exist, or if two names would look the same."""
    known = names(config)
    for name, text in config.labels.items():
        path = f"labels.{name}"
        _check_name(path, name, known)
        if not text.isprintable() or not text.strip() or len(text) > LONGEST:
            raise problem(path, f"{show_value(text)} cannot be shown", allowed=[f"one line of 1 to {LONGEST} letters"])
        if "$" in text or text.startswith("_"):
            what = f"{show_value(text)} would be read as a formula, or hidden, in figures"
            raise problem(
                path, what, allowed=["text without $ that does not begin with _"], hint="write ℓ₂, α, ² as they are"
            )
        other = next((one for one in known if one != name and config.labels.get(one, one) == text), None)
        if other is not None:
            raise problem(path, f"{text!r} is also the label of {other!r}, so they could not be told apart")
    return dict(config.labels)


def check_colours(config: Config) -> dict[str, str]:
    """Return name -> `#rrggbb`. Raise if a name or a colour does not exist."""
    known = names(config)
    found = {}
    for name, colour in config.colours.items():
        _check_name(f"colours.{name}", name, known)
        found[name] = _hex(f"colours.{name}", colour)
    return found


def names(config: Config) -> list[str]:
    """Return every name that can have a label or a colour: tasks, architectures, trainings, their components, names in options of measures,
    and the parts to which a model is cut."""
    found = {name for section in KINDS for name in getattr(config, section)}
    for section, design in (("architectures", Architecture), ("trainings", Training)):
        for kind in set(parts(design).values()):
            found |= set(components.names(kind))
        for entry in getattr(config, section).values():
            found |= {part.name for part in vars(entry).values() if isinstance(part, Component)}
    for crossing in config.grid:
        found |= {part for axis in crossing.axes.values() for part in _words(axis)}
    for measure in config.measures.values():
        found |= set(_words(measure.component.options))
    return sorted(found | set(CUTS))


def _words(value: Any) -> Iterator[str]:
    """Yield the texts in a value, and in its nested lists and mappings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _words(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _words(item)


def _check_name(path: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        near = nearest(name, known)
        raise problem(
            path,
            f"{show_value(name)} is not a task, architecture, training, component or model of this configuration",
            hint=f"did you mean {near!r}?" if near else "labels and colours are given to names that a table has",
        )


def _hex(path: str, colour: str) -> str:
    if HEX.fullmatch(colour):
        return colour
    known = _browser_names()
    if colour.lower() not in known:
        near = nearest(colour, known)
        hint = f"did you mean {near!r}?" if near else "in quotes, since # begins a comment in YAML"
        raise problem(
            path,
            f"{show_value(colour)} is not a colour",
            allowed=['"#rrggbb"', "a colour's name, such as teal"],
            hint=hint,
        )
    return known[colour.lower()]


@functools.cache
def _browser_names() -> dict[str, str]:
    """Return the colour names that browsers support too, with their values."""
    from matplotlib.colors import CSS4_COLORS

    return {name: str(value).lower() for name, value in CSS4_COLORS.items()}
