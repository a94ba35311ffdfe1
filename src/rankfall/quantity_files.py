"""Find the parts of a quantity: its measure, its table, and what is shown of it.

A quantity is a folder of its study, such as `rank/law/`, or a user's module, such as `mylab.entropy`. `measure.py` computes it, and
`shown.py` declares its table and what is shown of it. A long figure has a file, `figure.py`. An edit of `measure.py` makes rows stale, and
so does one of the declared columns, but not of their descriptions. A quantity may also be one file. A claim has a folder in
`studies/claims/`, with `experiment.py` and `rule.py`.

A quantity of networks that is measured in Hugging Face models too has a second table in the same folder: `rank/law/` declares `law` and
`model_law`. `models.py` measures it, apart from `measure.py`, so that an edit of the code that loads models leaves networks as they are.
What is shown of it has the prefix `model_` or `MODEL_`: `model_columns`, `MODEL_CHARTS`, `model_figure`.
"""

import functools
import re
from pathlib import Path

from rankfall.descriptions import Location, NotDefined
from rankfall.errors import RankfallError
from rankfall.modules import find_module, root_of

STUDIES = ("rank", "position", "identity", "use", "overview", "studies/prediction")
LISTS = {  # kind -> the name that declares it: a list in `shown.py`, or the rule of a claim
    "headline": "HEADLINES", "chart": "CHARTS", "sentence": "SENTENCES", "claim": "decide", "published": "PUBLISHED",
}  # fmt: skip
# Kind -> the name that declares it.
OF_A_STUDY = {"measure": "measure", "table": "columns", "figure": "figure", **LISTS}
# Kinds that may have a file in the folder.
OWN_FILES = {"measure": "measure.py", "figure": "figure.py", "claim": "rule.py"}
SHOWN = "shown.py"  # has the other kinds, and a short figure
MODELS, OF_MODELS = "models.py", "model_"  # the measure of a quantity in models, and the prefix of its names
CLAIMS = "studies/claims"  # of the checkout
EXPERIMENT, OF_AN_EXPERIMENT = "experiment.py", {"TABLE": "evidence", "NEEDS": "nothing"}  # the measure of a claim


def quantities_with(kind: str) -> set[str]:
    """Return the quantities of this package that have a kind in `shown.py` or in their single file."""
    quantities: set[str] = set()
    for study in STUDIES if kind != "claim" else ():
        folder = root_of(study) / study
        shown_files = [(path.parent.name, path) for path in folder.glob(f"*/{SHOWN}")]
        single_files = [(path.stem, path) for path in folder.glob("*.py")]
        quantities |= {name for name, path in shown_files + single_files if defines(path, OF_A_STUDY[kind])}
        quantities |= {
            f"{OF_MODELS}{path.parent.name}" for path in folder.glob("*/*.py") if _locate_of_models(kind, path)
        }
    return quantities


def _locate_of_models(kind: str, file: Path, module: str = "") -> Location | None:
    """Locate a component of a quantity in models in one of the files of its folder."""
    declared = OF_A_STUDY[kind]
    if kind == "measure":
        name = OF_MODELS + file.parent.name if file.name == MODELS else ""
    else:
        name = (OF_MODELS.upper() if declared.isupper() else OF_MODELS) + declared
    return Location(f"{module}.{file.stem}", file, (name,)) if name and defines(file, name) else None


def locate_in_study(kind: str, quantity: str) -> Location:
    """Locate a component of a quantity of this package."""
    for study in STUDIES if kind != "claim" else ():
        folder = root_of(study) / study / quantity
        module = f"{study if study.startswith('studies/') else f'rankfall/{study}'}/{quantity}".replace("/", ".")
        location = _locate_in_folder(kind, folder, module)
        if location is None and defines(file := folder.with_suffix(".py"), OF_A_STUDY[kind]):
            location = Location(module, file, (OF_A_STUDY[kind],))
        if location is None and quantity.startswith(OF_MODELS):
            networks, name = folder.with_name(quantity.removeprefix(OF_MODELS)), module.removesuffix(quantity)
            files = (networks / file for file in (MODELS, OWN_FILES.get(kind, SHOWN), SHOWN))
            of_models = (_locate_of_models(kind, file, name + networks.name) for file in files)
            location = next((candidate for candidate in of_models if candidate is not None), None)
        if location is not None:
            return location
    if kind in ("measure", "claim"):
        folder = root_of(CLAIMS) / CLAIMS / quantity
        location = _locate_in_folder(kind, folder, f"{CLAIMS.replace('/', '.')}.{quantity}")
        if location is not None:
            return location
    raise RankfallError(f"unknown {kind} {quantity!r}")


def locate_in_quantity(kind: str, quantity: str) -> Location:
    """Locate a component of a user's quantity, a folder or a single file."""
    spec = find_module(quantity) if all(part.isidentifier() for part in quantity.split(".")) else None
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if spec is None or not (folders or (spec.origin or "").endswith(".py")):
        raise RankfallError(
            f"{quantity!r}: no Python module {quantity!r} is installed or lies in the working directory"
        )
    alone = Path(folders[0]).with_suffix(".py") if folders else Path(str(spec.origin))
    if alone.is_file() and any(alone.with_suffix("").glob("*.py")):
        raise RankfallError(
            f"{quantity!r} is a file and a folder, of which Python reads one: {alone}\n  fix: rename one, or move the file into the folder"
        )
    if not folders:
        return Location(quantity, Path(str(spec.origin)), (OF_A_STUDY[kind],))
    located = (_locate_in_folder(kind, Path(folder), quantity) for folder in folders)
    location = next((location for location in located if location is not None), None)
    if location is None:
        files = " or ".join(filter(None, (OWN_FILES.get(kind), SHOWN)))
        raise NotDefined(f"{quantity!r} has no {kind}: {files} in {folders[0]} defines no {OF_A_STUDY[kind]!r}")
    return location


def _locate_in_folder(kind: str, folder: Path, module: str) -> Location | None:
    """Locate a component in a quantity's folder: in the file of its kind, or in `shown.py`."""
    last, declared = folder.name, OF_A_STUDY[kind]
    for name in filter(None, (OWN_FILES.get(kind), EXPERIMENT if kind == "measure" else None)):
        if (file := folder / name).is_file():
            names = (declared,) if kind in LISTS else (last, camel(last) + camel(kind), camel(last), declared)
            return Location(f"{module}.{file.stem}", file, names)
    file = folder / SHOWN
    return Location(f"{module}.{file.stem}", file, (declared,)) if defines(file, declared) else None


def defines(file: Path, name: str) -> bool:
    """Return whether a file exists and defines a name."""
    try:
        stat = file.stat()
    except OSError:
        return False
    return name in _definitions(file, stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=4096)
def _definitions(file: Path, mtime: int, size: int) -> frozenset[str]:
    """Return the names that a file defines at its top level. Time and size are part of the cache's key."""
    matches = re.findall(r"^(?:def|class) (\w+)|^(\w+)\b[^=\n(]*=", file.read_text(encoding="utf-8"), re.MULTILINE)
    return frozenset(name or assigned for name, assigned in matches)


def camel(name: str) -> str:
    """Return `l2_norm` as `L2Norm`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
