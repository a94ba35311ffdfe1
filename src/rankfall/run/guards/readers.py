"""Libraries that open files in C++, which Python's audit hook cannot see. During a job, wrappers of their functions raise audit events."""

import functools
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from inspect import isclass
from typing import Any

from rankfall.run.keys.installed import PREFIX, distributions_of

READ = "rankfall.read"  # audit event; its argument is a path
READERS = {  # module -> functions and classes that take a path
    "pyarrow": ("memory_map", "OSFile", "input_stream"),
    "pyarrow.parquet": ("read_table", "ParquetFile", "ParquetDataset"),
    "pyarrow.dataset": ("dataset",),
    "pyarrow.feather": ("read_table", "read_feather"),
    "pyarrow.csv": ("read_csv", "open_csv"),
    "h5py": ("File",),
    "safetensors": ("safe_open",),
    "safetensors.torch": ("load_file", "safe_open"),
    "safetensors.numpy": ("load_file", "safe_open"),
    "cv2": ("imread", "VideoCapture"),
    "torch": ("from_file",),
}


@contextmanager
def tell_of_reads(code: Mapping[str, str]) -> Iterator[Callable[[], None]]:
    """Yield a function that wraps the readers of all libraries imported so far; undo this at the end. Libraries in the key are imported and
    wrapped first, before a component can keep a reference to an unwrapped function."""
    for top in {module.partition(".")[0] for module in READERS}:
        if any(f"{PREFIX}{name}" in code for name in distributions_of(top)):
            with suppress(ImportError):
                import_library(top)
    done: set[str] = set()
    with ExitStack() as stack:

        def wrap() -> None:
            for module in READERS.keys() & sys.modules.keys() - done:
                done.add(module)
                for name in READERS[module]:
                    stack.enter_context(wrapped(sys.modules[module], name))

        wrap()
        yield wrap


def import_library(top: str) -> None:
    """Import a library and its modules that read files. torch needs no import: it is in no key, and loaded wherever it is used."""
    match top:
        case "pyarrow":
            import pyarrow.csv
            import pyarrow.dataset
            import pyarrow.feather
            import pyarrow.parquet  # noqa: F401
        case "safetensors":
            import safetensors.numpy
            import safetensors.torch  # noqa: F401
        case "h5py":
            import h5py  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: F401
        case "cv2":
            import cv2  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: F401


@contextmanager
def wrapped(holder: Any, name: str) -> Iterator[None]:
    """Wrap a function or the `__init__` of a class with `telling`. A class of C++ is replaced by a wrapper function."""
    before = getattr(holder, name, None)
    if before is None:
        yield
        return
    if isclass(before) and "__init__" in vars(before):
        with suppress(TypeError):  # a class of C++
            init = before.__init__  # type: ignore[misc]
            before.__init__ = telling(init)  # type: ignore[method-assign, misc]
            try:
                yield
            finally:
                before.__init__ = init  # type: ignore[method-assign, misc]
            return
    setattr(holder, name, telling(before))
    try:
        yield
    finally:
        setattr(holder, name, before)


def telling(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that raises an audit event for each path among its arguments, and then calls `call`."""

    @functools.wraps(call)
    def tell(*args: Any, **kwargs: Any) -> Any:
        for value in (*args, *kwargs.values()):
            for path in value if isinstance(value, list | tuple) else (value,):
                if isinstance(path, str | bytes | os.PathLike):
                    sys.audit(READ, path)
        return call(*args, **kwargs)

    return tell
