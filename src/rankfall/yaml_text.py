"""Reading and writing of YAML 1.2 (core schema): 1e-5 is a number, 2024-01-01 a text, 0o17 fifteen.

A text that version 1.1 reads as something else, such as `yes`, is written in quotes. `<<` merges as in version 1.1.
"""

import re
from collections.abc import Hashable
from typing import Any, ClassVar

import yaml

from rankfall.errors import RankfallError

INT, FLOAT, BOOL, NULL, MERGE = (f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null", "merge"))
# The tags of YAML 1.2, their patterns, and the characters with which a value may begin.
CORE = [
    (BOOL, re.compile(r"true|True|TRUE|false|False|FALSE"), "tTfF"),
    (INT, re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"), "-+0123456789"),
    (FLOAT, re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), "-+.0123456789"),
    (FLOAT, re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"), "-+."),
    (NULL, re.compile(r"~|null|Null|NULL|"), ["~", "n", "N", ""]),
    (MERGE, re.compile(r"<<"), "<"),
]


class _Core(yaml.SafeLoader):
    """A loader of YAML 1.2 for which a duplicate key is an error."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Read a mapping. Raise an error for a key that it has twice."""
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = None if key_node.tag == MERGE else self.construct_object(key_node, deep=True)
            if not isinstance(key, str | int | float):
                continue
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is there twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """A dumper that quotes text which either version would read as something else."""


for tag, pattern, first in CORE:
    anchored = re.compile(f"(?:{pattern.pattern})\\Z")
    for resolver in (_Core, _Dumper):
        resolver.add_implicit_resolver(tag, anchored, list(first))


def _integer(_: _Core, node: yaml.ScalarNode) -> int:
    """Read an integer of YAML 1.2, in which a leading zero means nothing."""
    text = node.value
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    return int(text if base == 10 else text[2:], base)


_Core.add_constructor(INT, _integer)


def load(text: str) -> Any:
    """Return the value of a document."""
    return yaml.load(text, Loader=_Core)


def dump(value: Any) -> str:
    """Return a document that readers of YAML 1.1 and 1.2 read alike."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=100, default_flow_style=None)


def load_value(text: str, where: str) -> Any:
    """Parse one value of the command line; `where` names it in errors."""
    try:
        return load(text)
    except (yaml.YAMLError, ValueError) as error:
        raise RankfallError(f"{where}: {getattr(error, 'problem', None) or ' '.join(str(error).split())}") from None
