"""Limits of a configuration's size. Anything beyond them is a mistake or an attack and is refused first: a few lines of YAML whose aliases
refer to one another can expand to more values than memory holds."""

from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from rankfall.errors import RankfallError
from rankfall.run.config.problems import problem, show_value
from rankfall.terminal import CONTROLS, clean

DEPTH = 50  # values within values
VALUES = 1_000_000  # the values of an alias count each time it is used
TEXT = 100_000  # characters
INTEGER = 2**63 - 1
BYTES = {".json": 20_000_000, ".yaml": 1_000_000}  # YAML is read at about a tenth of a megabyte a second
NAME = 100  # letters of a name that becomes part of file names: file systems allow 255, and suffixes need room
CELLS = 1_000_000


def check_values(raw: Any) -> None:
    """Raise if plain data are nested too deeply, have too many values, or contain a text or integer that is too large."""
    sizes: dict[int, tuple[int, int]] = {}  # values that occur in several places are measured once
    size, _ = _measure_size(raw, "", 0, sizes)
    if size > VALUES:
        raise RankfallError(f"the configuration has more than {VALUES:,} values, counting what aliases repeat")


def check_nodes(root: yaml.Node) -> None:
    """Check the nodes of YAML before values are built from them, because merging (`<<: *other`) copies what it names."""
    sizes: dict[int, tuple[int, int]] = {}
    size, _ = _measured_node(root, 0, sizes)
    if size > VALUES:
        raise RankfallError(f"there are more than {VALUES:,} values, counting what aliases repeat")


def _too_deep() -> str:
    return f"values are nested more than {DEPTH} deep, or an alias names what it stands in"


def _add_up(parts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return the number of values and the height of a value with these parts."""
    size, height = 1, 0
    for inner, high in parts:
        size, height = size + inner, max(height, high + 1)
    return min(size, VALUES + 1), height  # keeps the numbers small


def _measure_size(value: Any, path: str, depth: int, sizes: dict[int, tuple[int, int]]) -> tuple[int, int]:
    if isinstance(value, str):
        if len(value) > TEXT:
            raise problem(path, f"a text of {len(value):,} characters", allowed=[f"at most {TEXT:,}"])
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise problem(path, f"{show_value(value)} contains half a character, which cannot be written to a file")
        if CONTROLS.search(value):
            what = f"{show_value(value)} contains a control character, which a terminal would execute"
            raise problem(clean(path), what, hint="leave it out")
        return 1, 0
    if type(value) is int and abs(value) > INTEGER:
        raise problem(path, f"an integer of {value.bit_length()} bits", allowed=[f"at most {INTEGER}"])
    if not isinstance(value, dict | list | tuple):
        return 1, 0
    if id(value) not in sizes:
        if depth >= DEPTH:
            raise problem(path.partition(".")[0], _too_deep())
        sizes[id(value)] = _add_up(_parts(value, path, depth, sizes))
    if depth + sizes[id(value)][1] > DEPTH:
        raise problem(path.partition(".")[0], _too_deep())
    return sizes[id(value)]


def _parts(value: Any, path: str, depth: int, sizes: dict[int, tuple[int, int]]) -> Iterator[tuple[int, int]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in pairs:
        if isinstance(key, str):
            _measure_size(key, path, depth, sizes)
            if not key.isprintable():
                raise problem(
                    path, f"the key {show_value(key)} contains characters that cannot be printed", hint="leave it out"
                )
        yield _measure_size(item, f"{path}.{key}" if path else str(key)[:NAME], depth + 1, sizes)


def _measured_node(node: yaml.Node, depth: int, sizes: dict[int, tuple[int, int]]) -> tuple[int, int]:
    if isinstance(node, yaml.ScalarNode):
        return 1, 0
    if id(node) not in sizes:
        if depth >= DEPTH:
            raise RankfallError(_too_deep())
        inner = [part for pair in node.value for part in (pair if isinstance(pair, tuple) else (pair,))]
        sizes[id(node)] = _add_up(_measured_node(part, depth + 1, sizes) for part in inner)
    if depth + sizes[id(node)][1] > DEPTH:
        raise RankfallError(_too_deep())
    return sizes[id(node)]
