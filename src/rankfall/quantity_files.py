"""Find the parts of a quantity: its measure, its table, and what is shown of it.

A quantity is a folder of its study, such as `rank/law/`, or a user's module, such as `mylab.entropy`. An edit of `measure.py` makes rows
stale, and so does one of the declared columns, but not of their descriptions. `shown.py` declares the rest. A long part has a file of its
kind, such as `figure.py`. A quantity may also be one file. In `shown.py` and in one file, functions are named by their kind: `measure`,
`columns`, `figure`. A claim has a folder in `studies/claims/`, with `experiment.py` and `rule.py`.
"""

import functools
import re
from collections.abc import Iterable
from pathlib import Path

from rankfall.descriptions import Location, NotDefined
from rankfall.errors import RankfallError
from rankfall.modules import find_module, root_of

STUDIES = ("rank", "position", "identity", "use", "overview", "studies/prediction")
OF_A_STUDY = {
    "measure": "measure.py", "table": "columns.py", "figure": "figure.py",
    "headline": "headline.py", "chart": "chart.py", "sentence": "sentence.py", "claim": "rule.py", "published": "published.py",
}  # fmt: skip
LISTS = {  # kinds that a component can find, and the name that each of their files defines: a list, or the rule of a claim
    "headline": "HEADLINES", "chart": "CHARTS", "sentence": "SENTENCES", "claim": "decide", "published": "PUBLISHED",
}  # fmt: skip
SHOWN = "shown.py"  # the parts of a quantity's folder that have no file of their kind
CLAIMS = "studies/claims"  # of the checkout
EXPERIMENT, OF_AN_EXPERIMENT = "experiment.py", {"TABLE": "evidence", "NEEDS": "nothing"}  # the measure of a claim


def quantities_with(kind: str) -> set[str]:
    """Return the quantities of this package that have a kind in `shown.py` or in their single file."""
    found: set[str] = set()
    for study in STUDIES if kind != "claim" else ():
        folder = root_of(study) / study
        shown = [(path.parent.name, path) for path in folder.glob(f"*/{SHOWN}")]
        alone = [(path.stem, path) for path in folder.glob("*.py")]
        found |= {name for name, path in shown + alone if defines(path, _names_in_file(kind))}
    return found


def locate_in_study(kind: str, quantity: str) -> Location:
    """Locate a component of a quantity of this package."""
    for study in STUDIES if kind != "claim" else ():
        folder = root_of(study) / study / quantity
        module = f"{study if study.startswith('studies/') else f'rankfall/{study}'}/{quantity}".replace("/", ".")
        location = _locate_in_folder(kind, folder, module)
        if location is None and defines(file := folder.with_suffix(".py"), _names_in_file(kind)):
            location = Location(module, file, _names_in_file(kind))
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
    if not folders:
        return Location(quantity, Path(str(spec.origin)), _names_in_file(kind))
    located = (_locate_in_folder(kind, Path(folder), quantity) for folder in folders)
    location = next((location for location in located if location is not None), None)
    if location is None:
        raise NotDefined(
            f"{quantity!r} has no {kind}: there is no {OF_A_STUDY[kind]} in {folders[0]}, nor is it in {SHOWN}"
        )
    return location


def _locate_in_folder(kind: str, folder: Path, module: str) -> Location | None:
    """Locate a component in a quantity's folder: in the file of its kind, or in the file of all that is shown."""
    last, in_file = folder.name, _names_in_file(kind)
    for name in (OF_A_STUDY[kind], *[EXPERIMENT] * (kind == "measure")):
        if (file := folder / name).is_file():
            in_folder = in_file if kind in LISTS else (last, camel(last) + camel(kind), camel(last), *in_file)
            return Location(f"{module}.{file.stem}", file, in_folder)
    file = folder / SHOWN
    return Location(f"{module}.{file.stem}", file, in_file) if defines(file, in_file) else None


def _names_in_file(kind: str) -> tuple[str, ...]:
    """Return the name of a component in a file with several kinds."""
    return (LISTS.get(kind, OF_A_STUDY[kind].removesuffix(".py")),)


def defines(file: Path, attributes: Iterable[str]) -> bool:
    """Return whether a file exists and defines one of these names."""
    try:
        stat = file.stat()
    except OSError:
        return False
    return not _definitions(file, stat.st_mtime_ns, stat.st_size).isdisjoint(attributes)


@functools.lru_cache(maxsize=4096)
def _definitions(file: Path, mtime: int, size: int) -> frozenset[str]:
    """Return the names that a file defines at its top level. Time and size are part of the cache's key."""
    found = re.findall(r"^(?:def|class) (\w+)|^(\w+)\b[^=\n(]*=", file.read_text(encoding="utf-8"), re.MULTILINE)
    return frozenset(name or assigned for name, assigned in found)


def camel(name: str) -> str:
    """Return `l2_norm` as `L2Norm`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
