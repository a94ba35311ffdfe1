"""Versions of what computes: the installed distributions that a user's component imports, which are in keys, and the commit of the package,
which is recorded with a result and is in no key, since keys hash the code itself."""

import functools
import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import rankfall

PREFIX = "installed:"  # of the name of a distribution in a key, as `report/provenance.py` reads it
# Common packages: their versions are columns of every table, and in no key.
COMMON = frozenset({"torch", "numpy", "scipy", "pandas", "rankfall"})


def versions_of(modules: Iterable[str]) -> dict[str, str]:
    """Return name in the key -> version, for the distributions that imports of these modules need."""
    tops = {module.partition(".")[0] for module in modules} - COMMON - sys.stdlib_module_names
    names = sorted({name for top in tops for name in distributions_of(top)})
    return {f"{PREFIX}{name}": version for name in names if (version := version_of(name))}


def version_of(distribution: str) -> str:
    """Return the installed version, or an empty text."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def distributions_of(top: str) -> list[str]:
    """Return the distributions that have a module or package of this name."""
    return sorted({*_distributions().get(top, ())})


@functools.cache
def _distributions() -> Mapping[str, list[str]]:
    """Return top-level name -> distributions. Read once per process, and only if a user's component imports something."""
    return importlib.metadata.packages_distributions()


def commit() -> str | None:
    """Return the commit of the package's source, with `-dirty` if a tracked file differs from it. None if git does not track the package,
    which may be installed inside another repository."""
    folder = Path(rankfall.__file__).parent
    tracked = _git(folder, "ls-files", "--error-unmatch", "__init__.py") is not None
    return _git(folder, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*") if tracked else None


def _git(folder: Path, *words: str) -> str | None:
    """Return the output of a command of git; None if it fails."""
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}  # parallel jobs must not wait for one another's locks
    try:
        done = subprocess.run(
            ["git", *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=5, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
