"""Find the declarations of quantities for the scorecard and the page: the lists `HEADLINES`, `CHARTS` and `SENTENCES`.

They are in `shown.py` of the quantity's folder, or in the single file of the quantity. A user's quantity is a module, `mylab.entropy`, and
its table has the module's name. A run knows the users' quantities whose tables its measures fill (`set_user_quantities`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from rankfall import components
from rankfall.errors import RankfallError

STUDIES = {
    "rank": "Rank: do the tokens become the same vector?",
    "position": "Position: can it tell places apart?",
    "identity": "Identity: which token did a vector come from?",
    "use": "Use and cost: what does it learn, and how long does it take?",
    "claims": "Claims: what has been said about depth, and does it hold?",
}
_USER_QUANTITIES: list[str] = []  # users' modules that this process knows


def set_user_quantities(modules: Iterable[str]) -> None:
    """Set the users' quantities that this process knows."""
    _USER_QUANTITIES[:] = sorted(set(modules))


def set_user_headlines(modules: Iterable[str]) -> None:
    """Replace the users' quantities with headlines by those of a scorecard that was read. Quantities without headlines are kept."""
    others = [module for module in user_quantities() if not components.declares("headline", module)]
    set_user_quantities([*modules, *others])


def user_quantities() -> tuple[str, ...]:
    """Return the users' quantities that this process knows."""
    return tuple(_USER_QUANTITIES)


def declarations_of(kind: str) -> tuple[Any, ...]:
    """Return all declarations of a kind, with the study and the table of their folder, sorted by study and `place`."""
    declarations: dict[str, Any] = {}
    for quantity in sources(kind, user_quantities()):
        for item in components.load(kind, quantity):
            item = replace(item, study=item.study or study_of(kind, quantity), table=quantity)
            if item.name in declarations:
                other = declarations[item.name].table
                raise RankfallError(
                    f"{kind} {item.name!r} of {quantity} has a name that is taken by {other}: choose another"
                )
            declarations[item.name] = item
    ranks = {study: rank for rank, study in enumerate(STUDIES if kind != "sentence" else ())}
    return tuple(sorted(declarations.values(), key=lambda item: (ranks.get(item.study, len(ranks)), item.place)))


def sources(kind: str, modules: Iterable[str]) -> list[str]:
    """Return the quantities with declarations of a kind: those of the package and its studies, and those of these modules."""
    modules = list(modules)
    shared = claims_sharing(modules) if kind == "claim" else ()
    return [*components.names(kind), *(module for module in (*modules, *shared) if components.declares(kind, module))]


def study_of(kind: str, name: str) -> str:
    """Return the study of a quantity's folder; empty for a user's quantity."""
    location = components.locate(kind, name)
    top, study, *_ = f"{location.module}.".split(".") if location else ("", "")
    return study if top == __name__.partition(".")[0] else ""


STATEMENT = "statement.yaml"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's loader is ten times as fast


def read_statement(path: Path) -> dict[str, Any]:
    """Return the fields of a statement."""
    try:
        fields = yaml.load(path.read_bytes(), LOADER)
    except FileNotFoundError:
        raise RankfallError(
            f"{path} is missing\nA claim has statement.yaml and rule.py in a folder of its name"
        ) from None
    except yaml.YAMLError as error:
        raise RankfallError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(fields, dict):
        raise RankfallError(f"{path}: expected keys such as `says: ...`, found {type(fields).__name__}")
    return fields


def claims_sharing(modules: Iterable[str]) -> Iterator[str]:
    """Yield the users' claims that share the experiment of one of these modules, from the folders beside it."""
    for module in modules:
        parent, _, name = module.rpartition(".")
        location = components.locate("measure", module)
        if location is None or location.module == module:  # a single file
            continue
        for path in sorted(location.file.parent.parent.glob(f"*/{STATEMENT}")):
            if path.parent.name != name and read_statement(path).get("experiment") == name:
                yield f"{parent}.{path.parent.name}"
