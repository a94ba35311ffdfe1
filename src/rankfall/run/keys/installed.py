"""Installed distributions that a user's component imports: keys hold their names and versions."""

import functools
import importlib.metadata
import sys
from collections.abc import Iterable, Mapping

from rankfall.report.provenance import INSTALLED

PREFIX = INSTALLED  # prefix of a distribution's name in a key
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
