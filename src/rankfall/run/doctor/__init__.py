"""Checks of the machine for `rankfall doctor`. Each check reports what it finds and, if something is wrong, what to do."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Check:
    """The result of one check. `warn` costs time or comfort; `fail` stops a run or spoils its results."""

    name: str
    state: Literal["ok", "warn", "fail"]
    text: str


def ok(name: str, text: str) -> Check:
    return Check(name, "ok", text)


def warn(name: str, text: str) -> Check:
    return Check(name, "warn", text)


def fail(name: str, text: str) -> Check:
    return Check(name, "fail", text)
