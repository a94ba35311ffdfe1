"""Checks with names: what a check is, its result, and the run of all checks over one recorded model.

A check is a function of a `RecordedStream`, in a file of its own in `checks/`. Its docstring is what `--explain` prints: the question,
then the formula. Its limits are numbers that know their meaning and origin.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from textwrap import shorten
from typing import TYPE_CHECKING

from rankfall.errors import RankfallError, describe_error, suggest
from rankfall.streams.examine import FAILURES

if TYPE_CHECKING:
    from rankfall.check.recording import RecordedStream

PASS, WARN, FAIL, NONE = "pass", "warn", "fail", "not applicable"
NO_MIXER = ("nothing mixes tokens", "no branch of this stream mixes tokens, which lacks a part of the model")
# The order of the report. A cause comes before its effects, so the first check that fails is the cause.
ORDER = (
    "numbers-hold", "samples-independent", "no-future-leak", "mask-works", "stream-whole", "activations-sane", "attention-alive",
    "rank-kept", "positions-differ", "gradients-flow", "initial-loss", "width-transfers",
)  # fmt: skip

WHOLE = ("numbers-hold", "mask-works", "initial-loss", "width-transfers")  # of the model, and not of each stream


class Limit(float):
    """A threshold with its meaning and its origin."""

    meaning: str
    origin: str

    def __new__(cls, value: float, meaning: str, origin: str) -> Limit:
        limit = super().__new__(cls, value)
        limit.meaning, limit.origin = meaning, origin
        return limit


@dataclass(frozen=True)
class Result:
    """The verdict of one check on one stream: a sentence with the numbers, and the module path that it is about."""

    verdict: str
    sentence: str
    where: str = ""
    check: str = ""
    stream: str = ""


passed, warned, failed, skipped = (partial(Result, verdict) for verdict in (PASS, WARN, FAIL, NONE))


@dataclass(frozen=True)
class NamedCheck:
    """Hold a check and its name. `states`: whether it needs states that are finite and known."""

    name: str
    function: Callable[[RecordedStream], Result]
    limits: tuple[Limit, ...]
    states: bool

    @property
    def explanation(self) -> str:
        return inspect.getdoc(self.function) or ""


_CHECKS: dict[str, NamedCheck] = {}


def named(
    name: str, *limits: Limit, states: bool = True
) -> Callable[[Callable[[RecordedStream], Result]], Callable[[RecordedStream], Result]]:
    """Register a check under its name."""

    def register(function: Callable[[RecordedStream], Result]) -> Callable[[RecordedStream], Result]:
        _CHECKS[name] = NamedCheck(name, function, limits, states)
        return function

    return register


def all_checks() -> list[NamedCheck]:
    """Return the checks in the order of the report."""
    # Imported one by one, so that keys of the census follow these modules. Importing a module registers its check.
    from rankfall.check.checks import (  # noqa: F401
        activations,
        attention,
        formats,
        future,
        gradients,
        loss,
        masks,
        positions,
        rank,
        samples,
        stream,
        width,
    )

    return [_CHECKS[name] for name in ORDER]


def find_check(name: str) -> NamedCheck:
    if name not in ORDER:
        raise RankfallError(f"there is no check {name!r}: {', '.join(ORDER)}{suggest(name, ORDER)}")
    return all_checks()[ORDER.index(name)]


def run_checks(recordings: Iterable[RecordedStream], only: tuple[str, ...] = ()) -> list[Result]:
    """Return the result of each check on each stream, by check. A check of the whole model has one, on the first stream with states.

    What is found again on another stream, in the same words and place, concerns the whole model and is said once.
    """
    recordings = list(recordings)
    first = next((recording for recording in recordings if recording.report.judged), recordings[0])
    chosen = [find_check(name) for name in only] or all_checks()
    results: dict[tuple[str, ...], Result] = {}
    for check in chosen:
        for recording in [first] if check.name in WHOLE else recordings:
            result = replace(run_check(check, recording), check=check.name, stream=recording.flow.name)
            said = (result.sentence, result.where) if result.verdict in (FAIL, WARN) else (result.stream,)
            results.setdefault((check.name, *said), result)
    return list(results.values())


def run_check(check: NamedCheck, recording: RecordedStream) -> Result:
    """Run one check. If the model fails on changed inputs or states, the result gives the reason instead of a verdict."""
    if check.states and not recording.report.judged:
        return skipped(f"nothing is known of the states: {recording.report.kind}")
    try:
        return check.function(recording)
    except RankfallError as error:
        return skipped(str(error))
    except FAILURES as error:
        line = shorten(describe_error(error), 120, placeholder=" ...")
        return skipped(f"the model fails where it is changed: {line}")


def explain(name: str) -> str:
    """Return the question, the formula and the limits of a check, for `--explain`."""
    check = find_check(name)
    limits = [f"  {limit:g}: {limit.meaning}\n      {limit.origin}" for limit in check.limits]
    return "\n".join([f"{name}: {check.explanation}", *(["", "limits:"] if limits else []), *limits])
