"""Find modules as Python's import does, without importing them or their parent packages, and the versions of what computes.

These are the installed distributions that a user's component imports, which are in keys, and the commit of the package, which is recorded
with a result and is in no key, since keys hash the code itself.
"""

import functools
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]  # of an installed package, a folder without `studies`


def local_folders() -> list[str]:
    """Return where modules of users and of `studies/` are, after `sys.path`: the working directory, and the checkout of this package."""
    return list(dict.fromkeys([os.getcwd(), *([str(CHECKOUT)] if (CHECKOUT / "studies").is_dir() else [])]))


def root_of(pattern: str) -> Path:
    """Return the folder that a pattern of files is relative to: the package, or for `studies/...` the local folder that has the studies."""
    if not pattern.startswith("studies/"):
        return Path(__file__).parent
    folders = [Path(folder) for folder in local_folders()]
    return next((folder for folder in folders if (folder / "studies" / "claims").is_dir()), folders[0])


def find_module(module: str) -> importlib.machinery.ModuleSpec | None:
    """Return the spec of a module like `importlib.util.find_spec`, but import no parent package and search local folders last."""
    top, *below = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        spec = None
    spec = spec or importlib.machinery.PathFinder.find_spec(top, local_folders())
    name = top
    for part in below:
        if spec is None or spec.submodule_search_locations is None:
            return None
        name = f"{name}.{part}"
        spec = find_inside(name, list(spec.submodule_search_locations))
    return spec


def find_inside(module: str, folders: list[str]) -> importlib.machinery.ModuleSpec | None:
    """Return the spec of a module in the folders of its parent package, which need not be imported."""
    try:
        return importlib.machinery.PathFinder.find_spec(module, folders)
    except KeyError:  # a namespace package in another one, for which Python needs the parent
        spec = importlib.machinery.ModuleSpec(module, None, is_package=True)
        inside = (os.path.join(folder, module.rpartition(".")[2]) for folder in folders)
        spec.submodule_search_locations = [folder for folder in inside if os.path.isdir(folder)]
        return spec


PREFIX = "installed:"  # of the name of a distribution in the code of a cell, and so in its key
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
    folder = Path(__file__).parent
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
