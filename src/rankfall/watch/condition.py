"""Conditions that stop a run, such as `residual[-1] < 0.05 for 3 logs`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rankfall.errors import RankfallError, suggest
from rankfall.watch.columns import CURVES

COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
FORM = re.compile(
    r"\s*(\w+)\s*\[\s*([+-]?\d+)\s*\]\s*(<=|>=|==|!=|<|>)\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?:for\s+(\d+)\s+logs?)?\s*"
)


class RankLoss(RankfallError):
    """The error that stops a run when a condition of `raise_if` holds."""

    def __init__(self, text: str, step: int, layer: int, column: str, values: Sequence[float]) -> None:
        super().__init__(text)
        self.step, self.layer, self.column, self.values = step, layer, column, list(values)


class StopCondition:
    """Hold a condition, and the values of the latest logs in which it held."""

    def __init__(self, text: str) -> None:
        match = FORM.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise RankfallError(
                f"raise_if={text!r} is not understood: say COLUMN[LAYER] < NUMBER, such as 'residual[-1] < 0.05 for 3 logs'"
            )
        self.column, layer, self.sign, number, logs = match.groups()
        if self.column not in CURVES:
            hint = suggest(self.column, CURVES)
            raise RankfallError(
                f"raise_if={text!r}: there is no column {self.column!r}; allowed: {', '.join(CURVES)}{hint}"
            )
        self.text, self.layer, self.number, self.logs = text.strip(), int(layer), float(number), int(logs or 1)
        if self.logs < 1:
            raise RankfallError(f"raise_if={text!r}: it must hold for at least 1 log")
        self.held: list[float] = []

    def check(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Raise `RankLoss` if the condition has held for the required number of logs. A null number does not hold."""
        layers = [row["layer"] for row in rows]
        wanted = layers[self.layer] if -len(layers) <= self.layer < 0 else self.layer
        row = next((row for row in rows if row["layer"] == wanted), None)
        if row is None:
            raise RankfallError(
                f"raise_if={self.text!r}: there is no layer {self.layer}; there are {layers[0]} to {layers[-1]}"
            )
        value = row[self.column]
        if value is None or not COMPARE[self.sign](value, self.number):
            self.held.clear()
            return
        self.held.append(value)
        if len(self.held) >= self.logs:
            shown = ", ".join(f"{value:.4g}" for value in self.held)
            logs = f" in {self.logs} logs" if self.logs > 1 else ""
            block = f" ({row['block']})" if row["block"] else ""
            raise RankLoss(
                f"step {row['step']}: {self.column} of layer {wanted}{block} is {shown}{logs}, and the run is stopped by "
                f"raise_if={self.text!r}",
                row["step"], wanted, self.column, self.held,
            )  # fmt: skip


def check_layers(conditions: Sequence[StopCondition], depth: int) -> None:
    """Raise an error if a condition names a layer that a model of this depth does not have."""
    for condition in conditions:
        if not -depth - 1 <= condition.layer <= depth:
            raise RankfallError(
                f"raise_if={condition.text!r}: there is no layer {condition.layer}; there are 0 to {depth}, and -1 is the last"
            )
