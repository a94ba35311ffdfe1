"""Find modules as Python's import does, without importing them or their parent packages."""

import importlib.machinery
import importlib.util
import os
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
