"""Checks of the machine for `rankfall doctor`: each says what it found and, where something is wrong, what to do."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Check:
    """One finding. `warn` costs time or comfort; `fail` will stop a run or spoil its results."""

    name: str
    state: Literal["ok", "warn", "fail"]
    text: str
