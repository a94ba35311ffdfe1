"""Conditions of `--fail-if`: a quantity, a comparison and a number, such as "residual_last < 0.1"."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from rankfall.check.layer import LayerReport, StreamReport
from rankfall.errors import RankfallError, suggest

COMPARED: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
LISTS = ("layer", "name", "parts", "orders", "head_gradients")  # fields of a layer that are no single quantity
COLUMNS = tuple(name for name in LayerReport.__dataclass_fields__ if name not in LISTS)
PLACES = ("first", "last", "min", "max")
FORM = re.compile(r"\s*([a-z_]+)(?:\[(-?\d+)\])?\s*(<=|>=|<|>)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*")


@dataclass(frozen=True)
class Condition:
    """A comparison of one quantity of a report with a number."""

    text: str
    column: str
    place: str | int  # a layer, or one of PLACES
    compared: str
    limit: float

    def holds(self, report: StreamReport) -> bool | None:
        """Return whether the condition holds, or None if this stream lacks the quantity."""
        value = self.value(report)
        return None if value is None else COMPARED[self.compared](value, self.limit)

    def value(self, report: StreamReport) -> float | None:
        values = [getattr(layer, self.column) for layer in report.layers]
        if self.place in ("min", "max"):
            known = [float(value) for value in values if value is not None]
            return (min if self.place == "min" else max)(known) if known else None
        place = {"first": 0, "last": -1}.get(str(self.place), self.place)
        if not -len(values) <= int(place) < len(values):
            raise RankfallError(f"--fail-if {self.text!r}: there is no layer {place}, layers are 0 to {report.depth}")
        value = values[int(place)]
        return None if value is None else float(value)


def condition(text: str) -> Condition:
    """Parse a condition. The error names the supported quantities."""
    match = FORM.fullmatch(text)
    if match is None:
        raise RankfallError(
            f'--fail-if {text!r}: write a quantity, one of < <= > >=, and a number, for example "residual_last < 0.1"'
        )
    name = match[1]
    if match[2] is not None:
        place: str | int = int(match[2])
        column = name
    else:
        column, _, place = name.rpartition("_")
        if place not in PLACES:
            column, place = name, ""
    if column not in COLUMNS or place == "":
        allowed = [f"{quantity}_{end}" for quantity in COLUMNS for end in PLACES]
        raise RankfallError(
            f"--fail-if {text!r}: no quantity {name!r}; it is a column ({', '.join(COLUMNS)}) and _first, _last, _min, _max or [layer]"
            + suggest(name, allowed)
        )
    return Condition(text, column, place, match[3], float(match[4]))
