"""List the files of a store that nothing needs. `rankfall gc` shows them and, with --delete, removes them."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rankfall.disk import cannot
from rankfall.run.store import Store
from rankfall.run.store.announced import is_running, read_announcements
from rankfall.run.store.files import SUFFIX
from rankfall.run.store.rows import ITEMS, folder_of, read_rows
from rankfall.run.store.rows import SUFFIX as ROWS_SUFFIX
from rankfall.run.store.singles import TRIAL, read_checkpoint, read_dataset
from rankfall.run.store.stacks import read_stack

DAY = 86_400.0  # seconds
ABANDONED = 1 * DAY  # seconds after which a temporary file of another machine counts as abandoned
FORGOTTEN = 30 * DAY  # seconds: age from which trials, rows of items and checkpoints without cells can be removed


@dataclass(frozen=True)
class Live:
    """The keys of results that plans in use need."""

    cells: set[str] = field(default_factory=set)
    data: set[str] = field(default_factory=set)
    measures: dict[str, set[str]] = field(default_factory=dict)  # measure's component -> measure keys


@dataclass(frozen=True)
class Item:
    """A file that can be removed."""

    kind: str  # stack, dataset, rows, checkpoint, trial, temporary, announcement, damaged, plan
    path: Path
    bytes: int
    age: float  # seconds since the last write
    reason: str


class Files:
    """The files in folders of the results, with their sizes and times."""

    def __init__(self, store: Store, *folders: str) -> None:
        self.store, self.root, self.now = store, store.root, store.now()
        self.entries = {path: entry for folder in folders for path, entry in store.list_all(folder).items()}

    def select(self, folder: str, suffix: str = "") -> list[Path]:
        """Return the finished files of a folder by name. Hidden names are temporary files."""
        parent = self.root / folder
        paths = [path for path in self.entries if path.parent == parent]
        return sorted(path for path in paths if path.name.endswith(suffix) and not path.name.startswith("."))

    def items(self, kind: str, path: Path, reason: str, older: float = 0.0) -> Iterator[Item]:
        """Yield a file as an item, if it exists and was written at least `older` seconds ago."""
        if path in self.entries:
            size, written = self.entries[path]
            age = max(0.0, self.now - written)
            if age >= older:
                yield Item(kind, path, size, age, reason)


def find_removable(store: Store, live: Live) -> list[Item]:
    """Return the files that nothing in `live` needs. A stack or a file of rows stays while it supplies a live key."""
    parts = (_find_stacks, _find_rows, _find_checkpoints, _find_others)
    files = Files(store, store.root.name)
    return [item for part in parts for item in part(files, live)]


def remove(items: list[Item], store: Store) -> None:
    """Remove files and folders, some of which may be gone already.

    A folder is renamed first, so that a run that starts meanwhile finds a whole plan or none, and then writes its own."""
    for item in items:
        path = item.path
        try:
            if store.objects:
                store.objects.remove(path)
            if path.is_dir() and not path.is_symlink():
                path = path.rename(path.with_name(f".{path.name}.gone"))
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise cannot("remove", path, error) from error


def verify(store: Store) -> tuple[int, int]:
    """Read every finished file completely and set damaged files aside. Return the numbers of read and of damaged files."""
    read = damaged = 0
    for folder, suffix, reader in _kinds(store):
        for entry in store.files(folder, suffix):
            read += 1
            damaged += store.read(Path(entry.path), reader) is None
    return read, damaged


def _kinds(store: Store) -> list[tuple[str, str, Callable[[Path], object]]]:
    """Return (folder, suffix, function that reads and checks a file) for every folder with finished files."""
    kinds: list[tuple[str, str, Callable[[Path], object]]] = [
        ("data", SUFFIX, read_dataset),
        ("checkpoints", SUFFIX, read_checkpoint),
    ]
    kinds += [(f"stacks/{group}", SUFFIX, read_stack) for group in store.folders("stacks")]
    return kinds + [(f"measures/{name}", ROWS_SUFFIX, read_rows) for name in store.folders("measures")]


def _find_stacks(files: Files, live: Live) -> Iterator[Item]:
    """Yield removable stacks. In an object store, a stack goes before its header, and one without a header cannot be found."""
    store = files.store
    used = {cell.stack for cell in store.find_cells(live.cells).values()}
    held: dict[Path, bool] = {}
    for cell in store.records():
        held[cell.stack] = held.get(cell.stack, False) or cell.key in live.cells
    for path in sorted(held.keys() - used):
        reason = "its cells are also in other files" if held[path] else "no cell of it is in the plan"
        for file in (path, store.header(path)):
            yield from files.items("stack", file, reason)
    if store.objects:
        folder = files.root / "stacks"
        for path in sorted(path for path in files.entries if folder in path.parents and path not in held):
            yield from files.items("stack", path, "its writing was interrupted")


def _find_rows(files: Files, live: Live) -> Iterator[Item]:
    """Yield removable files of rows. Plans do not list the items of their measures, so rows of items go when they are old."""
    live_keys = {folder_of(name): keys for name, keys in live.measures.items()}
    for name in files.store.folders("measures"):
        paths = files.select(f"measures/{name}", ROWS_SUFFIX)
        if name.endswith(ITEMS):
            for path in paths:
                yield from files.items("rows", path, "holds rows of single items, and is old", FORGOTTEN)
            continue
        covered = files.store.find_covered(name)
        used = {covered[key] for key in live_keys.get(folder_of(name), set()) if key in covered}
        for path in paths:
            if path not in used:
                yield from files.items("rows", path, f"nothing in the plan's measure {name} is read from it")


def _find_checkpoints(files: Files, live: Live) -> Iterator[Item]:
    """Yield checkpoints from which no live key is computed."""
    finished = files.store.find_cells(live.cells)
    waiting = {key for key in live.cells if key not in finished or finished[key].status == "failed"}
    for name, keys in live.measures.items():
        waiting |= keys - files.store.find_covered(name).keys()
    for path, cells in files.store.find_checkpoints().items():
        if cells is None:
            yield from files.items("checkpoint", path, "does not say whose it is, and is old", FORGOTTEN)
        elif not waiting.intersection(cells):
            yield from files.items("checkpoint", path, "what it is of is finished or not in the plan")


def _find_others(files: Files, live: Live) -> Iterator[Item]:
    """Yield data sets that no cell uses, old trials, files of dead processes, and damaged files."""
    for path in files.select("data", SUFFIX):
        if path.stem not in live.data:
            yield from files.items("dataset", path, "no cell of the plan uses it")
    for path in files.select("trials", TRIAL):  # plans do not list trials, and a removed trial is repeated
        yield from files.items("trial", path, "is old, and is repeated in milliseconds", FORGOTTEN)
    for path in sorted(path for path in files.entries if path.name.startswith(".") and path.suffix == ".tmp"):
        yield from files.items("temporary", path, "its writer is dead", ABANDONED if _writer_lives(path.name) else 0.0)
    for path in read_announcements(files.store)[1]:
        yield from files.items("announcement", path, "the process that wrote it is dead")
    for path in files.select("damaged"):
        yield from files.items("damaged", path, "was found damaged and set aside")


def _writer_lives(name: str) -> bool:
    """Return whether the writer of a temporary file may still run. The file's name contains its machine and process."""
    start, pid, _, _ = name.rsplit(".", 3)
    if not start.endswith("." + socket.gethostname()) or not pid.isdigit():
        return True  # another machine's file: only its age is known
    return is_running(int(pid))
