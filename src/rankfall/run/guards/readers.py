"""Libraries that open files in C++, which Python's audit hook cannot see. Wrappers of their functions raise audit events."""

import functools
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
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
WRAPPED: set[str] = set()  # modules whose readers are wrapped; they stay so, and the events matter only during a job


def wrap_readers(code: Mapping[str, str]) -> None:
    """Wrap the readers of all libraries imported so far. Libraries in the key are imported first, so that no component can keep a reference
    to a function that is not wrapped."""
    for module in READERS.keys() - WRAPPED:
        if any(f"{PREFIX}{name}" in code for name in distributions_of(module.partition(".")[0])):
            with suppress(ImportError):
                import_library(module.partition(".")[0])
        if module in sys.modules:
            WRAPPED.add(module)
            for name in READERS[module]:
                _wrap(sys.modules[module], name)


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


def _wrap(holder: Any, name: str) -> None:
    """Wrap a function, or the `__init__` of a class. A class of C++ is replaced by a wrapper function."""
    reader = getattr(holder, name, None)
    if isclass(reader) and "__init__" in vars(reader):
        with suppress(TypeError):  # a class of C++
            reader.__init__ = _announcing(reader.__init__)  # type: ignore[misc, method-assign]
            return
    if reader is not None:
        setattr(holder, name, _announcing(reader))


def _announcing(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that raises an audit event for each path among its arguments, and then calls `call`."""

    @functools.wraps(call)
    def announce(*args: Any, **kwargs: Any) -> Any:
        for value in (*args, *kwargs.values()):
            for path in value if isinstance(value, list | tuple) else (value,):
                if isinstance(path, str | bytes | os.PathLike):
                    sys.audit(READ, path)
        return call(*args, **kwargs)

    return announce
