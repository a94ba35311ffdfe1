"""Files that are never part of keys: Python, installed packages, the system, and caches and settings of programs.

A folder of the work itself (the working directory, and wherever the code of a key lies) is inside, though it may lie in one of these.
"""

import os
import site
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from pathlib import Path

from rankfall.components import find_module
from rankfall.run.keys.loader import INSTALLED

SYSTEM = ("/proc", "/sys", "/dev", "/etc", "/run", "/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt")
CACHES = (  # variables that name folders of programs' caches and settings
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "MPLCONFIGDIR", "TORCH_HOME", "TORCHINDUCTOR_CACHE_DIR"),
    *("TRITON_CACHE_DIR", "CUDA_CACHE_PATH", "HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "TRANSFORMERS_CACHE"),
)
METADATA = (".dist-info", ".egg-info")  # of installed distributions; that of an editable one lies beside its sources
TOPICS = "pydoc_data.topics"  # a text that comes with Python and is used as data; no two versions have the same
STANDARD = tuple(os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib"))


class Outside:
    """Answers for one job; `inside` are the folders of its code."""

    def __init__(self, inside: Iterable[str]) -> None:
        home = Path("~").expanduser()
        hidden = (str(path) for path in home.glob(".*")) if home.is_dir() else ()
        caches = (os.environ[name] for name in CACHES if os.environ.get(name))
        python = (*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix, *site.getsitepackages())
        outside = (*SYSTEM, *hidden, *caches, *python, tempfile.gettempdir())
        topics = find_module(TOPICS)
        own = (folder for folder in inside if os.path.basename(folder) not in INSTALLED)
        self.roots = dict.fromkeys(map(os.path.realpath, outside), True)
        self.roots |= dict.fromkeys(map(os.path.realpath, (os.getcwd(), *own)), False)
        if topics and topics.origin:
            self.roots[os.path.realpath(topics.origin)] = False
        self.known: dict[str, bool] = {}

    def __contains__(self, path: str) -> bool:
        """By the innermost of the folders that a path lies in."""
        if path not in self.known:
            self.known[path] = self._judge(os.path.realpath(path))
        return self.known[path]

    def _judge(self, path: str) -> bool:
        for place in (path, *map(str, Path(path).parents)):
            if place in self.roots:
                return self.roots[place]
            if os.path.basename(place) in INSTALLED or place.endswith(METADATA):
                return True
        return False


def is_installed(file: str) -> bool:
    """Whether a source file is Python's own or an installed package's."""
    return file.startswith(STANDARD) or bool(INSTALLED.intersection(Path(file).parts))
