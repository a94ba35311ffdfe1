"""Decide a claim: intervals over seeds, thresholds, and the verdict that follows from the conditions of a rule."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self

from rankfall.annotations import DataFrame
from rankfall.errors import RankfallError

HOLDS, IN_PART, CONTRADICTED, UNDECIDED = "holds", "holds only in part", "contradicted", "undecided"
VERDICTS = (HOLDS, IN_PART, CONTRADICTED, UNDECIDED)
WHEN = ("holds", "in_part", "contradicted", "undecided")  # keywords of `judge`, in the order of VERDICTS
LEVEL = 0.95  # confidence level of an interval over seeds
SIDES = ("above", "below", "at", "split at")  # split at: some lines belong above, others below


class Threshold(float):
    """A number of a rule, with its quantity: the rule requires that `quantity` lies on this `side`. Figures draw it as a line if an axis
    shows the quantity. `where`: the lines and the place for which it holds."""

    side: str
    quantity: str
    where: str

    def __new__(cls, value: float, side: str, quantity: str, where: str = "") -> Self:
        if side not in SIDES or not quantity.strip():
            raise RankfallError(
                f"threshold {value:g} of {quantity!r}: side is {side!r}; allowed: {', '.join(SIDES)}, and the quantity must not be empty"
            )
        threshold = super().__new__(cls, value)
        threshold.side, threshold.quantity, threshold.where = side, quantity, where
        return threshold


def name_axes(quantity: str) -> tuple[str, str]:
    """Split "y, by x" into the names of the axis of values and the other axis; the latter is empty for a name without "by"."""
    values, _, by = quantity.rpartition(", by ")
    return (values, by) if values else (quantity, "")


def within(centre: float, reach: float, quantity: str, where: str = "") -> tuple[Threshold, Threshold]:
    """Return the two thresholds of an interval around `centre`."""
    return Threshold(centre - reach, "above", quantity, where), Threshold(centre + reach, "below", quantity, where)


@dataclass(frozen=True)
class Extension:
    """The answer for a setting that the benchmark adds to the source's, such as another mask; None: not decided."""

    setting: str  # completes "extends to ...", numbers in brackets
    true: bool | None

    def __str__(self) -> str:
        verb = {True: "Extends to", False: "Does not extend to", None: "Undecided for"}[self.true]
        return f"{verb} {self.setting}."


@dataclass(frozen=True)
class Decision:
    """The verdict of the tables on a claim in its source's setting: one of VERDICTS, a sentence with the numbers, and the number that
    decides, with its interval over seeds. `extends` holds answers for settings that the benchmark adds; they do not change the verdict.
    `wants`: what would decide an undecided claim."""

    verdict: str
    said: str
    number: float | None = None
    low: float | None = None
    high: float | None = None
    seeds: int = 0
    wants: str = ""
    extends: tuple[Extension, ...] = ()
    cells: tuple[str, ...] = ()  # keys of the networks that decide it; empty: all networks of the tables that it reads

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise RankfallError(f"{self.verdict!r} is not a verdict; allowed: {', '.join(VERDICTS)}")
        if (self.verdict == UNDECIDED) != bool(self.wants):
            raise RankfallError(
                f"verdict {self.verdict!r}: an undecided claim needs `wants`, what would decide it; others have none"
            )


Read = Callable[[str], Any]  # name -> table, None if the run does not have it; from `evidence` only the claim's rows


@dataclass(frozen=True)
class Band:
    """A mean over seeds with its interval (Student's t). With a single seed, or equal values, the interval is the number itself."""

    mean: float
    low: float
    high: float
    seeds: int

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.mean:.3g}"
        return f"{self.mean:.3g} ({self.low:.3g} to {self.high:.3g})"

    def fields(self) -> dict[str, Any]:
        """Return the fields of a `Decision`."""
        return {"number": self.mean, "low": self.low, "high": self.high, "seeds": self.seeds}


def band(values: Iterable[float]) -> Band:
    """Return the mean of the finite values with its interval over seeds."""
    from scipy.stats import t

    numbers = [float(value) for value in values if value is not None and math.isfinite(value)]
    if not numbers:
        raise RankfallError("there is no number to average")
    count = len(numbers)
    mean = math.fsum(numbers) / count
    if count == 1:
        return Band(mean, mean, mean, 1)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in numbers) / (count - 1))
    reach = float(t.ppf((1 + LEVEL) / 2, count - 1)) * deviation / math.sqrt(count)
    return Band(mean, mean - reach, mean + reach, count)


def evidence_rows(rows: DataFrame, quantity: str, line: str | None = None, x: float | None = None) -> DataFrame:
    """Return the rows of a claim's evidence with this quantity (and line and x), sorted by line, x and seed; it may be empty."""
    selected = rows[rows.quantity == quantity]
    if line is not None:
        selected = selected[selected.line == line]
    if x is not None:
        selected = selected[(selected.x - x).abs() <= 1e-9 * max(1.0, abs(x))]
    return selected.sort_values(["line", "x", "seed"])


def band_of(rows: DataFrame, quantity: str, line: str, x: float) -> Band:
    """Return the mean and interval over the seeds of a point."""
    return band(evidence_rows(rows, quantity, line, x).value)


def change_of(rows: DataFrame, quantity: str, line: str, first: float, last: float) -> Band:
    """Return the mean and interval of the change from one x to another, seed by seed."""
    before, after = (evidence_rows(rows, quantity, line, x).value.to_numpy() for x in (first, last))
    return band(after - before)


def judge(
    said: str, number: Band | float | None, wants: str = "", extends: Iterable[Extension] = (), **when: bool
) -> Decision:
    """Return a decision. Its verdict is the first true keyword in the order of the call, of `holds`, `in_part`, `contradicted` and
    `undecided`; if none is true, it is undecided. `wants` is used only if it is undecided."""
    verdict = VERDICTS[WHEN.index(next((name for name, true in when.items() if true), WHEN[-1]))]
    fields = number.fields() if isinstance(number, Band) else {"number": None if number is None else float(number)}
    return Decision(verdict, said, **fields, wants=wants if verdict == UNDECIDED else "", extends=tuple(extends))


def is_on(interval: Band, threshold: Threshold) -> bool | None:
    """Return whether the whole interval lies on the threshold's side; None if the threshold is within the interval."""
    answer = compare(interval, threshold)
    return None if answer == "undecided" else answer == threshold.side


def compare(interval: Band, threshold: float) -> str:
    """Return `above` or `below` if the whole interval lies there, else `undecided`."""
    if interval.low > threshold:
        return "above"
    return "below" if interval.high < threshold else "undecided"
