"""Find the declarations of quantities for the scorecard and the page: the lists `HEADLINES`, `CHARTS` and `SENTENCES`.

They are in `shown.py` of the quantity's folder, in the file of their kind there (`sentence.py`), or in the single file of the quantity.
A user's quantity is a module, `mylab.entropy`. A run knows those whose tables its measures fill (`lend`); such a table is named by the
module.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rankfall import components
from rankfall.errors import RankfallError
from rankfall.report.statements import claims_sharing

STUDIES = {
    "rank": "Rank: do the tokens become the same vector?",
    "position": "Position: can it tell places apart?",
    "identity": "Identity: which token did a vector come from?",
    "use": "Use and cost: what does it learn, and how long does it take?",
    "claims": "Claims: what has been said about depth, and does it hold?",
}
_LENT: list[str] = []  # users' modules that this process knows


def lend(modules: Iterable[str]) -> None:
    """Set the users' quantities that this process knows."""
    _LENT[:] = sorted(set(modules))


def lend_headlines(modules: Iterable[str]) -> None:
    """Set the users' modules whose headlines this process knows, those of a scorecard that was read; modules without headlines are kept."""
    lend([*modules, *(module for module in lent() if not components.declares("headline", module))])


def lent() -> tuple[str, ...]:
    return tuple(_LENT)


def declarations_of(kind: str) -> tuple[Any, ...]:
    """Return all declarations of a kind, with the study and the table of their folder, sorted by study and `place`."""
    found: dict[str, Any] = {}
    for quantity in sources(kind, lent()):
        for item in components.load(kind, quantity):
            item = replace(item, study=item.study or study_of(kind, quantity), table=quantity)
            if item.name in found:
                other = found[item.name].table
                raise RankfallError(
                    f"{kind} {item.name!r} of {quantity} has a name that is taken by {other}: choose another"
                )
            found[item.name] = item
    ranks = {study: rank for rank, study in enumerate(STUDIES if kind != "sentence" else ())}
    return tuple(sorted(found.values(), key=lambda item: (ranks.get(item.study, len(ranks)), item.place)))


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
