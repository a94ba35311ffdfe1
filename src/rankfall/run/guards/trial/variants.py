"""What a component gives as it is used, and in every variant of that: with another value of one option, and for one token more.

In one process the variants come last, and in another, fresh and with another PYTHONHASHSEED, they come first. What differs between the two
follows from what was computed before, such as a table that is kept by its length alone, or from the order of a set of words.

In a third, other numbers of the same shape come first. What is kept of them may cancel but for rounding, as a maximum that is subtracted
from all scores does, so bits are compared. Processes may round otherwise of themselves; so what differs is computed twice more, with and
without the other numbers before it, and counts where both are as they were.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rankfall import components
from rankfall.design import Component
from rankfall.errors import RankfallError
from rankfall.run.config.least import limits_of
from rankfall.run.config.options import check, choices
from rankfall.run.guards.trial.candidate import Candidate, Drawn
from rankfall.run.guards.trial.data import are_alike
from rankfall.run.guards.trial.kinds import KINDS, try_component
from rankfall.run.guards.trial.maps import AGREE, difference
from rankfall.run.guards.trial.setting import Surroundings

Outcome = list[Tensor] | str  # all that a trial has made; why it is refused
AS_USED = "as it is used"
NOTHING, VARIANTS, NUMBERS = "nothing", "variants", "other numbers"  # before it
OTHER_SCALE = 3.7  # no power of two, by which nothing is rounded otherwise
NUMBERLESS = ("mask", "init", "schedule", "task")  # kinds that are given none, or a generator


def outcomes(kind: str, component: Component, setting: Surroundings) -> dict[str, Outcome]:
    """Of every variant, by what it is: of another value of each option the first that the component takes."""
    found: dict[str, Outcome] = {}
    for options in others(kind, component):
        for name, other in options:
            changed = replace(component, options={**component.options, name: other})
            found[told := f"with {name} = {other}"] = outcome(kind, changed, setting)
            if not isinstance(found[told], str):
                break
    if "tokens" in KINDS[kind].reads:
        found["for one token more"] = outcome(kind, component, replace(setting, tokens=setting.tokens + 1))
    return found


def outcomes_of_use(
    kind: str, component: Component, setting: Surroundings, drawn: Callable[[], Drawn], after: str
) -> dict[str, Outcome]:
    """Of a component as it is used, in a fresh process: after nothing, all variants (which are given too), or other numbers."""
    found = outcomes(kind, component, setting) if after == VARIANTS else {}
    if after == NUMBERS:
        outcome(kind, component, replace(setting, scale=OTHER_SCALE))
    return found | {AS_USED: outcome(kind, component, setting, drawn())}


def outcome(kind: str, component: Component, setting: Surroundings, drawn: Drawn = None) -> Outcome:
    try:
        return try_component(kind, component, setting, drawn).results
    except RankfallError as error:  # an option may allow no other value, and a component no other length
        return str(error)


def others(kind: str, component: Component) -> Iterator[list[tuple[str, Any]]]:
    """Of each option, other values that its annotation and limits allow."""
    described = components.describe(kind, component.name)
    if described is None:
        return
    for name, option in described.options.items():
        limits = limits_of(kind, described, name)
        used = component.options.get(name, option.default)
        default = [option.default] if option.literal else []
        tried = [*default, *choices(option.annotation), *_others(used, option.annotation)]
        yield [(name, other) for other in tried if other != used and _is_allowed(option, other, limits)]


def _is_allowed(option: components.Option, value: Any, limits: tuple[Any, Any]) -> bool:
    try:
        check(option.annotation, value, "", limits)
    except RankfallError:
        return False
    return True


def compare(candidate: Candidate, here: dict[str, Outcome], there: dict[str, Outcome]) -> None:
    """Raise `Refused` where the other process gave something else."""
    for told, other in there.items():  # variants first
        one = here.get(told)
        if told == AS_USED and isinstance(other, str):
            why = other.removeprefix(candidate.title).partition("; ")[0].strip()
            raise candidate.refusal(
                f"is refused in another process, after it was tried with other options, and not in this: it {why}",
                "keep nothing between calls, such as a generator in a global, and let nothing depend on what a process is",
            )
        if isinstance(one, list) and isinstance(other, list) and not _same(candidate.kind, one, other):
            raise candidate.refusal(
                f"gives something else in another process, {told}",
                "let nothing depend on the order of a set or on `hash` (write `sorted`), and keep no table that another option or length "
                "would change",
            )


def compare_bits(candidate: Candidate, here: Outcome, there: Callable[[str], Outcome]) -> None:
    """Raise `Refused` where it gives other bits after other numbers; `there` is what it gives in a process of its own after something."""
    found = there(NUMBERS)
    if not _equal(found, here) and _equal(there(NOTHING), here) and _equal(there(NUMBERS), found):
        raise candidate.refusal(
            "gives other bits after it was given other numbers of the same shape",
            "keep nothing between calls that follows from more than the size of what is given",
        )


def _equal(one: Outcome, other: Outcome) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str)
    return len(one) == len(other) and all(map(torch.equal, one, other))


def _others(used: Any, annotation: str) -> list[Any]:
    """Other values of an option, the likeliest to be possible first; none where it is not known what that might be."""
    if isinstance(used, bool):
        return [not used]
    if isinstance(used, int):
        return [used + 1, 2 * used, used - 1]
    if isinstance(used, float):
        return [1.5 * used + 0.25, 0.8 * used]
    if isinstance(used, list | tuple) and used:
        return [[other, *used[1:]] for other in _others(used[0], "")]
    return [True, 1, 0.5] if used is None and annotation else []


def _same(kind: str, one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    if len(one) != len(other) or any(a.shape != b.shape for a, b in zip(one, other)):
        return False
    if kind == "task":
        return all(are_alike(a, b) for a, b in zip(one, other))
    return all(difference([a.double()], [b.double()]) <= AGREE for a, b in zip(one, other) if a.numel())
