"""Check labels and colours of a configuration: the names exist, and labels and colours can be displayed."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rankfall import components
from rankfall.design import Architecture, Component, Training, parts
from rankfall.run.config.problems import problem, show_value
from rankfall.run.config.types import Config

HEX = re.compile(r"#[0-9a-fA-F]{6}")
LONGEST = 60  # letters of a label: a legend has no room for more
CUTS = ("SAN", "SAN+MLP", "SAN+skip", "transformer", "SAN+bare MLP")  # parts to which a model can be cut


def check_looks(config: Config) -> tuple[dict[str, str], dict[str, str]]:
    """Return name -> label and name -> `#rrggbb`. Raise if a name does not exist, a label or colour cannot be shown, or two names have the
    same label."""
    known = nameable(config)
    for path, name in [("labels", name) for name in config.labels] + [("colours", name) for name in config.colours]:
        if name not in known:
            fault = "is not a task, architecture, training, component or model of this configuration"
            raise problem(f"{path}.{name}", f"{show_value(name)} {fault}", near=known, name=name)
    for name, text in config.labels.items():
        path = f"labels.{name}"
        if not text.isprintable() or not 0 < len(text.strip()) <= LONGEST or "$" in text or text.startswith("_"):
            allowed = [f"one line of 1 to {LONGEST} letters without $, which begins a formula, and without _ in front"]
            raise problem(path, f"{show_value(text)} cannot be shown", allowed=allowed)
        others = [other for other in known if other != name and config.labels.get(other, other) == text]
        if others:
            raise problem(path, f"{text!r} is also the label of {others[0]!r}, so they could not be told apart")
    return dict(config.labels), {name: _hex(f"colours.{name}", colour) for name, colour in config.colours.items()}


def nameable(config: Config) -> list[str]:
    """Return every name that can have a label or a colour.

    These are tasks, architectures, trainings, their components, texts in axes and in options of measures, and the parts of a model."""
    known = {*CUTS, *config.tasks, *config.architectures, *config.trainings}
    for kind in {*parts(Architecture).values(), *parts(Training).values()}:
        known |= set(components.names(kind))
    for entry in (*config.architectures.values(), *config.trainings.values()):
        known |= {part.name for part in vars(entry).values() if isinstance(part, Component)}
    values = [crossing.axes for crossing in config.grid]
    values += [measure.component.options for measure in config.measures.values()]
    return sorted(known.union(_words(values)))


def _words(value: Any) -> Iterator[str]:
    """Yield the texts in a value, and in its nested lists and mappings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _words(item)


def _hex(path: str, colour: str) -> str:
    """Return a colour as `#rrggbb`."""
    if HEX.fullmatch(colour):
        return colour
    from matplotlib.colors import CSS4_COLORS  # the names that browsers know too

    if colour.lower() not in CSS4_COLORS:
        allowed = ['"#rrggbb" in quotes', "a colour's name, such as teal"]
        raise problem(path, f"{show_value(colour)} is not a colour", allowed=allowed, near=CSS4_COLORS, name=colour)
    return str(CSS4_COLORS[colour.lower()]).lower()
