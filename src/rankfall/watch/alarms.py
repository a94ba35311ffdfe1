"""The alarms of a training: what went wrong, at which step and layer, in one sentence each. And conditions that stop a run.

An alarm is a function of the rows of a run alone, so that the training and the page report the same events. It is raised once, and again
only after a weaker condition has ended it (hysteresis). A condition is the user's, such as `residual[-1] < 0.05 for 3 logs`.
"""

from __future__ import annotations

import math
import operator
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from rankfall.errors import RankfallError, suggest
from rankfall.watch.columns import CURVES, GRADIENT_NOT_FINITE, LOSS_NOT_FINITE

Row = Mapping[str, Any]
ENTROPY = (0.1, 0.2)  # nats: raised below the first, ended above the second
RANK = (0.05, 0.1)  # residual: raised below the first, ended above the second
FALLEN = 0.1  # share of the largest residual of the first logs; a layer that begins low, as by a common vector, has lost nothing
NORM = (10.0, 5.0)  # times the median of the last logs
GROWN = 1000.0  # times the median of the first logs; our choice, since training makes vectors longer
DEAD = (0.1, 0.05)  # growth of the share of dead units over its median in the first logs
MANY = 256  # tokens that a log needs for this alarm: with fewer, units of any trained network stay unused
# How far the loss of a single log, or of each of two logs in a row, must exceed the median: as a share of the median, as a multiple of the
# largest rise of the loss from log to log, and in standard deviations.
SPIKE, RISES, NOISE = (0.3, 0.05), (2.0, 1.0), (12.0, 5.0)
SIGMA = 1.4826  # standard deviation of a normal distribution over its median absolute deviation
GAINED = 0.02  # share of the loss that training has gained; a loss near 0 may vary by it
DEVIATIONS = 6.0  # median absolute deviations from which a layer has moved
MOVED = 1.5  # ratio to the median from which a layer has moved
FEWEST, LAST = 5, 20  # logs that a median needs, and has at most
FOLLOWED = ("norm", "residual", "entropy", "gradient_queries", "gradient_keys")


@dataclass(frozen=True)
class Event:
    """An alarm that was raised. `kind` is 'entropy', 'floor', 'rank', 'norm', 'loss', 'dead' or 'nan'; `layer` is None if unknown."""

    step: int
    kind: str
    layer: int | None
    text: str


class Alarms:
    """The alarms of one run. `update` takes the rows of each log in order."""

    def __init__(self) -> None:
        self.raised: set[tuple[str, int]] = set()
        # by column and layer
        self.history: dict[tuple[str, int], deque[float]] = defaultdict(lambda: deque(maxlen=LAST + FEWEST))
        self.first: dict[tuple[str, int], list[float]] = defaultdict(list)  # the first values, `FEWEST` at most
        self.steps: deque[int] = deque(maxlen=LAST + FEWEST)
        self.high = False  # whether the loss of the last log was high enough for the first of two
        # rows whose gradient is not finite, of the first log in an unbroken run of such logs
        self.gradients: list[Row] = []

    def update(self, rows: Sequence[Row]) -> list[Event]:
        """Return the events of a log."""
        events = [
            *self.not_finite(rows),
            *(event for row in rows[1:] for event in self.of_layer(row)),
            *self.spike(rows),
        ]
        self.steps.append(rows[0]["step"])
        for row in rows:
            for column in (*FOLLOWED, "dead_units", "loss"):
                key, value = (column, row["layer"]), row[column]
                self.history[key].append(math.nan if value is None else value)
                if value is not None and len(self.first[key]) < FEWEST:
                    self.first[key].append(value)
        return events

    def switch(self, kind: str, layer: int, on: bool, off: bool) -> bool:
        """Return whether an alarm is raised now."""
        key = (kind, layer)
        if key in self.raised:
            self.raised -= {key} if off else set()
            return False
        self.raised |= {key} if on else set()
        return on

    def past(self, column: str, layer: int) -> list[float]:
        """Return the last known values of a column."""
        return [value for value in self.history[column, layer] if not math.isnan(value)][-LAST:]

    def not_finite(self, rows: Sequence[Row]) -> Iterator[Event]:
        """Raise the alarm of NaN or infinity. If an update has made the weights NaN, all layers show it, and the cause is earlier."""
        step, broken = rows[0]["step"], next((row for row in rows if row["broken"]), None)
        before, now = self.gradients, [row for row in rows if row["gradient_reason"] == GRADIENT_NOT_FINITE]
        self.gradients = now and (before or now)
        loss = rows[0]["loss_reason"] == LOSS_NOT_FINITE
        if not self.switch("nan", 0, broken is not None or loss, broken is None and not loss):
            return
        if broken is None:
            text = f"{LOSS_NOT_FINITE}, but the states of all layers are: look behind the last layer"
            yield Event(step, "nan", None, text)
        elif self.steps and step > self.steps[-1] + 1 and broken["layer"] <= 1:
            text = f"{state_name(broken)} is not finite; all states of step {self.steps[-1]} were. One update makes all weights NaN: "
            yield layer_event(broken, "nan", f"{text}to see where it begins, log every step")
        elif before:
            text = f"{state_name(broken)} is not finite, by gradients of step {before[0]['step']}: there all states were finite, "
            yield layer_event(broken, "nan", f"{text}but the gradient of {layer_name(before[-1])} was not")
        else:
            finite = f"; that of layer {broken['layer'] - 1} is finite" if broken["layer"] else ""
            yield layer_event(broken, "nan", f"{state_name(broken)} is the first that is not finite{finite}")

    def of_layer(self, row: Row) -> Iterator[Event]:
        """Raise the alarms of one layer: entropy, floor, rank, norm and dead units."""
        layer, entropy, norm, dead = row["layer"], row["entropy"], row["norm"], row["dead_units"]
        name = layer_name(row)
        conditions: list[tuple[str, bool, bool, str]] = []  # kind, whether the alarm is raised, whether it ends, text
        if entropy is not None:
            text = f"attention of {name} looks at one token: its entropy is {entropy:.2g} nats"
            conditions.append(("entropy", entropy < ENTROPY[0], entropy > ENTROPY[1], text))
        floor, residual = row["residual_floor"], row["residual"]
        if floor is not None and residual is not None:
            text = f"the tokens of {name} are equal up to the rounding of {row['dtype']} (residual {residual:.2g})"
            conditions.append(("floor", floor, not floor, text))
        if residual is not None and not floor:
            most = max(self.first["residual", layer], default=0.0)
            text = f"the tokens of {name} become equal: residual {residual:.2g}, after {most:.2g} at first"
            conditions.append(("rank", residual < min(RANK[0], FALLEN * most), residual > RANK[1], text))
        past = self.past("norm", layer)
        if norm is not None and len(past) >= FEWEST:
            last, early = (norm / max(median(part), 1e-300) for part in (past, self.first["norm", layer]))
            times, when = (last, "in the last logs") if last > NORM[0] else (early, "at first")
            ended = last < NORM[1] and early < GROWN / 2
            text = f"token vectors of {name} are {times:.3g} times as long as {when}"
            conditions.append(("norm", last > NORM[0] or early > GROWN, ended, text))
        first = self.first["dead_units", layer]
        if dead is not None and len(first) == FEWEST and (row["tokens"] or 0) >= MANY:
            grown = dead - median(first)
            text = f"{dead:.0%} of the units of {name} are dead, after {median(first):.0%} at first"
            conditions.append(("dead", grown > DEAD[0], grown < DEAD[1], text))
        for kind, on, off, text in conditions:
            if self.switch(kind, layer, on, off):
                yield layer_event(row, kind, text)

    def spike(self, rows: Sequence[Row]) -> Iterator[Event]:
        """Raise the alarm of a loss far above its median, and name the layer that moved first."""
        loss, past = rows[0]["loss"], self.past("loss", rows[0]["layer"])
        if loss is None or len(past) < FEWEST:
            return
        middle = median(past)
        rise = max(after - before for before, after in pairwise(past))
        noise = SIGMA * median(abs(value - middle) for value in past)
        gained = GAINED * (median(self.first["loss", rows[0]["layer"]]) - middle)
        alone, twice = (
            middle + max(share * abs(middle), times * rise, wide * noise, gained)
            for share, times, wide in zip(SPIKE, RISES, NOISE)
        )
        before, self.high = self.high, loss > twice
        if not self.switch("loss", 0, loss > alone or (self.high and before), loss < (middle + twice) / 2):
            return
        text = f"the loss is {loss:.4g}, after {middle:.4g} in the last logs"
        moved = self.first_moved(rows)
        if moved is None:
            yield Event(rows[0]["step"], "loss", None, f"{text}; no layer moved before it")
            return
        row, step, column, ratio = moved
        text = f"{text}; {layer_name(row)} moved first: at step {step} its {column} is {ratio:.3g} times its median"
        yield Event(row["step"], "loss", row["layer"], text)

    def first_moved(self, rows: Sequence[Row]) -> tuple[Row, int, str, float] | None:
        """Return the row of the layer that left its range first, with the step, the column and the ratio to its median.

        If several layers leave their range in one log, the one with the largest change is first.
        """
        candidates: list[tuple[int, float, tuple[Row, int, str, float]]] = []
        for row in rows[1:]:
            for column in FOLLOWED:
                values = [*self.history[column, row["layer"]], math.nan if row[column] is None else row[column]]
                logs = [math.log(value) if value > 0 else math.nan for value in values]
                for at in range(max(len(logs) - FEWEST, FEWEST), len(logs)):
                    past = [value for value in logs[:at] if not math.isnan(value)][-LAST:]
                    if len(past) < FEWEST or math.isnan(logs[at]):
                        continue
                    middle = median(past)
                    least = max(math.log(MOVED), DEVIATIONS * median(abs(value - middle) for value in past))
                    change = abs(logs[at] - middle)
                    if change > least:
                        step = [*self.steps, row["step"]][at]
                        candidates.append((step, -change, (row, step, column, math.exp(logs[at] - middle))))
                        break
        return min(candidates, key=lambda candidate: candidate[:2])[2] if candidates else None


def layer_name(row: Row) -> str:
    return f"layer {row['layer']} ({row['block']})" if row["block"] else "the input of the first block"


def state_name(row: Row) -> str:
    return f"the state of {layer_name(row)}" if row["block"] else layer_name(row)


def layer_event(row: Row, kind: str, text: str) -> Event:
    return Event(row["step"], kind, row["layer"], text)


def events_of_run(rows: Sequence[Row]) -> list[Event]:
    """Return the events of all rows of a run, in order."""
    alarms = Alarms()
    logs: dict[int, list[Row]] = {}
    for row in rows:
        logs.setdefault(row["step"], []).append(row)
    return [event for log in logs.values() for event in alarms.update(log)]


COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
FORM = re.compile(
    r"\s*(\w+)\s*\[\s*([+-]?\d+)\s*\]\s*(<=|>=|==|!=|<|>)\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?:for\s+([1-9]\d*)\s+logs?)?\s*"
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
