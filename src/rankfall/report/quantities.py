"""What quantities declare for the scorecard and the page, found in their folders: `headline.py`, `chart.py`, `sentence.py` and `claim.py`.

A quantity of a user is a module (`mylab.entropy`): a folder with the same files, or one file. A run has those that its measures fill the
tables of (`lend`); such a table is named by the module.
"""

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rankfall import components
from rankfall.errors import RankfallError

STUDIES = {
    "rank": "Rank: do the tokens become the same vector?",
    "position": "Position: can it tell places apart?",
    "identity": "Identity: which token did a vector come from?",
    "use": "Use and cost: what does it learn, and how long does it take?",
    "claims": "Claims: what has been said about depth, and does it hold?",
}
_LENT: list[str] = []  # modules of users that this process knows


def lend(modules: Iterable[str]) -> None:
    """From here on these quantities of users count, and no others."""
    _LENT[:] = sorted(set(modules))


def lend_headlines(modules: Iterable[str]) -> None:
    """The same for headlines alone: a scorecard has been read, which has those of these modules."""
    lend([*modules, *(module for module in lent() if not declares("headline", module))])


def lent() -> tuple[str, ...]:
    return tuple(_LENT)


def declarations_of(kind: str) -> tuple[Any, ...]:
    """All that quantities declare of a kind, with the study and the table of their folder; by study and `place`."""
    found: dict[str, Any] = {}
    for quantity in sources(kind, lent()):
        for item in components.load(kind, quantity):
            item = replace(item, study=item.study or study_of(kind, quantity), table=quantity)
            if item.name in found:
                other = found[item.name].table
                raise RankfallError(
                    f"{kind} {item.name!r} of {quantity} has a name that is taken, by that of {other}: choose another"
                )
            found[item.name] = item
    ranks = {study: rank for rank, study in enumerate(STUDIES if kind != "sentence" else ())}
    return tuple(sorted(found.values(), key=lambda item: (ranks.get(item.study, len(ranks)), item.place)))


def sources(kind: str, modules: Iterable[str]) -> list[str]:
    """The quantities that declare some: ours, and those of these modules."""
    return [*components.names(kind), *(module for module in modules if declares(kind, module))]


def declares(kind: str, module: str) -> bool:
    """Whether a quantity of a user has the file of a kind, or, where it is one file, the list."""
    try:
        location = components.locate(kind, module)
    except RankfallError:
        return False
    if location is None or location.module != module:
        return location is not None
    tree = ast.parse(location.file.read_bytes())
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    return any(isinstance(target, ast.Name) and target.id in location.attributes for target in targets)


def study_of(kind: str, name: str) -> str:
    """The study whose folder a quantity lies in; empty for one of a user."""
    location = components.locate(kind, name)
    top, study, *_ = f"{location.module}.".split(".") if location else ("", "")
    return study if top == __name__.partition(".")[0] else ""
