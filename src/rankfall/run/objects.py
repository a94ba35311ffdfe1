"""Keep results in an object store. The folder of results is then a cache, and each of its files is an object of the same name.

If a profile has a `default-storage-provider`, Snakemake keeps the files of its rules there itself. This module keeps the files that
Snakemake does not know: the store, the written plan, and the published files. Names are digests and files appear whole, so reading is "get
if it exists", writing is a single put, and nothing is locked. The file `objects.json` in a folder of results holds the address of its
objects.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from rankfall.disk import StoreError, write
from rankfall.errors import RankfallError, describe_error

MARKER = "objects.json"
TOGETHER = 16  # concurrent requests
SECRETS = {"key": "ACCESS_KEY", "secret": "SECRET_KEY", "token": "TOKEN"}  # option of s3fs -> variable of Snakemake


class Objects:
    """The objects of a folder of results."""

    def __init__(self, folder: Path, url: str, endpoint_url: str | None = None) -> None:
        self.folder, self.url, self.endpoint_url = folder, url.rstrip("/"), endpoint_url

    def mark(self) -> None:
        """Write the address of the objects, for every process that opens the folder."""
        (self.folder / "store").mkdir(parents=True, exist_ok=True)
        write(self.folder / MARKER, json.dumps({"url": self.url, "endpoint_url": self.endpoint_url}))

    def names(self, folder: str) -> dict[str, int]:
        """Return the names of all objects in a folder, relative to the results, with their sizes."""
        return {name: size for name, (size, _) in self.list_all(folder).items()}

    def list_all(self, folder: str) -> dict[str, tuple[int, float]]:
        """Return the names of all objects in a folder, relative to the results, with their sizes and times of writing."""
        listed: dict[str, Any] = {}
        with suppress(FileNotFoundError), self._report("list", folder):
            listed = self.system.find(self.root, detail=True, prefix=f"{folder}/")
        entries = {name[len(self.root) + 1 :]: (entry["size"], _time(entry)) for name, entry in listed.items()}
        return {name: entry for name, entry in entries.items() if name.startswith(f"{folder}/")}

    def fetch(self, path: Path) -> bool:
        """Copy an object to its path. Return False if there is none."""
        content = None
        with suppress(FileNotFoundError), self._report("read", self._name(path)):
            content = self.system.cat_file(self._address(path))
        if content is not None:
            write(path, content)
        return content is not None

    def fetch_new(self, folder: str, names: Iterable[str] | None = None) -> None:
        """Copy the objects of a folder, or those in `names`, that have no copy of the same size here."""
        sizes = self.names(folder)
        selected = sizes if names is None else sizes.keys() & names
        self._each(self.fetch, [self.folder / name for name in selected if _size(self.folder / name) != sizes[name]])

    def put(self, path: Path) -> None:
        """Copy a finished file to its object."""
        with self._report("write", self._name(path)):
            self.system.put_file(str(path), self._address(path))

    def put_new(self, folder: Path) -> None:
        """Copy the files of a folder that have no object of the same size."""
        sizes = self.names(self._name(folder))
        paths = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
        self._each(self.put, [path for path in paths if sizes.get(self._name(path)) != _size(path)])

    def remove(self, path: Path) -> None:
        """Remove an object, if it exists."""
        with suppress(FileNotFoundError), self._report("remove", self._name(path)):
            self.system.rm_file(self._address(path))

    def now(self, path: Path) -> float:
        """Return the time by the clock of the object store: the date of an object that is written at this path and removed."""
        with self._report("write", self._name(path)):
            self.system.pipe_file(self._address(path), b"now")
            time = _time(self.system.info(self._address(path)))
        self.remove(path)
        return time

    @property
    def system(self) -> Any:
        """Return the file system of fsspec that has the objects."""
        return self._opened[0]

    @property
    def root(self) -> str:
        """Return the folder of the objects in that file system."""
        return self._opened[1]

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        """Return `system` and `root`. Secrets come from Snakemake's plugin, whose variables an executor passes to its jobs, or are AWS's
        own.
        """
        import fsspec

        options: dict[str, Any] = {"use_listings_cache": False}
        if self.url.startswith("s3:"):
            secrets = {name: os.environ.get(f"SNAKEMAKE_STORAGE_S3_{words}") for name, words in SECRETS.items()}
            options |= {name: value for name, value in secrets.items() if value}
            # With a higher concurrency, s3fs asks for the size of each object before it reads it.
            options |= {"endpoint_url": self.endpoint_url, "max_concurrency": 1}
            if region := os.environ.get("SNAKEMAKE_STORAGE_S3_REGION"):
                options["client_kwargs"] = {"region_name": region}
        elif self.url.startswith("file:"):
            options["auto_mkdir"] = True
        try:
            system, root = fsspec.core.url_to_fs(self.url, **options)
        except ImportError as error:
            raise RankfallError(f"{self.url}: {error}\nfix: pip install 'rankfall[s3]'") from None
        return system, root.rstrip("/")

    def _each(self, call: Any, paths: list[Path]) -> None:
        with ThreadPoolExecutor(TOGETHER) as pool:
            list(pool.map(call, paths))

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def _address(self, path: Path) -> str:
        return f"{self.root}/{self._name(path)}"

    @contextmanager
    def _report(self, action: str, name: str) -> Iterator[None]:
        """Raise a `StoreError` for any error, since each kind of object store has its own. Pass on that an object to read is missing."""
        try:
            yield
        except Exception as error:
            if isinstance(error, FileNotFoundError) and action != "write":
                raise
            raise StoreError(
                f"cannot {action} {self.url}/{name}: {describe_error(error)}\n"
                f"finished results are untouched; mend this and run again, or remove {self.folder / MARKER} to use the folder alone"
            ) from error


def find_objects(results: Path) -> Objects | None:
    """Return the objects of a folder of results, or None if its files are in the folder alone."""
    try:
        marker = json.loads((results / MARKER).read_bytes())
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise RankfallError(
            f"results: {results} is a file or lies inside one\nfix: choose another folder, by `results:` in the configuration or --results"
        ) from None
    except (OSError, ValueError) as error:
        raise RankfallError(
            f"{results / MARKER} cannot be read: {error}\nfix: remove it; the next run writes it"
        ) from None
    return Objects(results, marker["url"], marker["endpoint_url"])


def _time(entry: Mapping[str, Any]) -> float:
    """Return the time of writing of an object in S3, or of a file."""
    return entry["LastModified"].timestamp() if "LastModified" in entry else entry["mtime"]


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
