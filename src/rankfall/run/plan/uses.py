"""The components that a measure without cells uses. Its job ends if it uses another."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rankfall import components
from rankfall.design import Architecture, Component, parts
from rankfall.filters import as_list
from rankfall.modules import find_module
from rankfall.nets.plain import PLAIN
from rankfall.run.config.problems import problem, show_value

DOTTED = re.compile(r"\w+(\.\w+)*:\w+")


def always(options: Mapping[str, Any], facts: Mapping[str, Any], path: str) -> Iterator[tuple[str, Component]]:
    """Yield the components from which a measure builds its own networks, as its file lists them (`BUILDS`; for other kinds the plainest),
    and the components that options name by module."""
    built = facts.get("BUILDS", {})
    built = built and {kind: [name] for kind, name in PLAIN.items()} | built
    for kind, names in sorted(built.items()):
        known = components.names(kind)
        for name in names:
            if name not in known:
                raise problem(path, f"its component says BUILDS = {show_value(built)}", allowed=known, given=name)
            if components.locate(kind, name) is not None:
                yield kind, Component(name=name)
    for option in sorted(options.keys() - facts.get("PARTS", {}).keys()):
        for item in as_list(options[option]):
            part = item.get("name") if isinstance(item, dict) else item
            if isinstance(part, str) and DOTTED.fullmatch(part) and find_module(part.partition(":")[0]):
                yield "part", Component(name=part)


def chosen(options: Mapping[str, Any], facts: Mapping[str, Any], builds: bool) -> Iterator[tuple[str, Component]]:
    """Yield the components that options choose (`PARTS`). With `builds`, for a measure that builds networks without BUILDS, also yield
    every component of a network."""
    for kind in sorted(set(parts(Architecture).values())) if builds else ():
        for name in components.names(kind):
            if components.locate(kind, name) is not None:
                yield kind, Component(name=name)
    for option, kind in facts.get("PARTS", {}).items():
        for part in map(Component.parse, as_list(options.get(option, []))):
            if components.locate(kind, part.name) is not None:
                yield kind, part
