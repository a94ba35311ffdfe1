"""Claims about depth: a published statement, its source, and the rule by which tables decide it. A quantity declares its claims as `CLAIMS`
in `claim.py` of its folder; most claims have a separate folder, `claims/NAME/`, whose `measure.py` fills the table `evidence`.

A rule is committed before the numbers exist: `threshold` states it in words, and `decide` applies it.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from rankfall import components
from rankfall.annotations import DataFrame
from rankfall.errors import RankfallError, describe_error
from rankfall.report.quantities import declarations_of

HOLDS, IN_PART, CONTRADICTED, UNDECIDED = "holds", "holds only in part", "contradicted", "undecided"
VERDICTS = (HOLDS, IN_PART, CONTRADICTED, UNDECIDED)
WHEN = ("holds", "in_part", "contradicted", "undecided")  # keywords of `judge`, in the order of VERDICTS
SEEN = {  # parts of a source that have been read
    "table": "a table of the paper",
    "figure": "a figure of the paper",
    "text": "the paper's text",
    "theorem": "the theorem and its proof",
    "abstract": "the abstract alone",
    "code": "the authors' code",
    "second-hand": "what others have written about it",
}
OF_VALUES = ("table", "figure", "text", "code")  # parts from which a number can be quoted
LINK = re.compile(r"https://\S+")
LEVEL = 0.95  # confidence level of an interval over seeds
SIDES = ("above", "below", "at", "split at")  # split at: some lines belong above, others below


@dataclass(frozen=True)
class Published:
    """A number of the source for a quantity and line of the evidence at `x`, which the figure shows beside the measured one."""

    quantity: str
    line: str
    x: float
    value: float
    seen: str  # one of OF_VALUES
    place: str  # such as "table 2"


class Threshold(float):
    """A number of a rule, with its quantity: the rule requires that `quantity` lies on this `side`. Figures draw it as a line if an axis
    shows the quantity, and otherwise state it in words. `where`: the lines and the place for which it holds."""

    side: str
    quantity: str
    where: str

    def __new__(cls, value: float, side: str, quantity: str, where: str = "") -> Self:
        if side not in SIDES or not quantity.strip():
            raise RankfallError(
                f"threshold {value:g} of {quantity!r}: side is {side!r}; allowed: {', '.join(SIDES)}, and the quantity must not be empty"
            )
        made = super().__new__(cls, value)
        made.side, made.quantity, made.where = side, quantity, where
        return made

    def __str__(self) -> str:
        """Return the threshold as text for a caption."""
        what, _ = name_axes(self.quantity)
        return f"{what} {self.side} {float(self):.3g}" + (f" ({self.where})" if self.where else "")


def name_axes(quantity: str) -> tuple[str, str]:
    """Split "y, by x" into the names of the axis of values and the other axis; the latter is empty for a name without "by"."""
    what, _, by = quantity.rpartition(", by ")
    return (what, by) if what else (quantity, "")


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
    """The decision of the tables in the source's setting: one of VERDICTS, a sentence with the numbers, and the number that decides, with
    its interval over seeds. `extends` has the settings that the benchmark adds, which do not change the verdict. `wants` says what would
    decide an undecided claim."""

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
class Claim:
    """A published statement and the rule that decides it. `says`: the statement in a sentence; `setting`: what is measured here;
    `threshold`: when it counts as true, and why; `thresholds`: the numbers of that rule, which `decide` compares with and figures draw;
    `reads`: the tables that decide it, with their columns; `changed`: changes of rule or experiment after numbers were seen, and why;
    `defects`: errors in published code, with file and line."""

    name: str
    says: str
    paper: str  # authors, title, year
    link: str
    seen: tuple[str, ...]  # keys of SEEN
    setting: str
    threshold: str
    decide: Callable[[Read], Decision | None]  # returns None if the run has no data that could decide it
    reads: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: {"evidence": ("quantity", "line", "x", "seed", "value")}
    )
    thresholds: tuple[Threshold, ...] = ()
    published: tuple[Published, ...] = ()
    changed: str = ""  # empty if nothing was changed
    defects: str = ""
    shown: str = ""  # the quantity of its figure; by default the first by name
    place: int = 1000
    study: str = ""
    table: str = ""  # the quantity that declares it


def claims() -> tuple[Claim, ...]:
    """Return all claims that quantities declare, including those of users."""
    found: tuple[Claim, ...] = declarations_of("claim")
    return found


def check_claims(columns_of: Callable[[str], Iterable[str]]) -> None:
    """Raise an error for a claim without a source, with a published value from an unread part of the source, or with unknown tables or
    columns. `columns_of(table)`: the columns of a table."""
    try:
        every = claims()
    except (ImportError, AttributeError, NameError, SyntaxError, TypeError, ValueError) as error:
        raise RankfallError(f"a claim cannot be read: {describe_error(error)}") from error
    for claim in every:
        where = f"claim {claim.name!r} of {claim.table}"
        for name in ("says", "paper", "setting", "threshold"):
            if not getattr(claim, name).strip():
                raise RankfallError(f"{where}: {name!r} is empty")
        if not LINK.fullmatch(claim.link):
            raise RankfallError(f"{where}: link {claim.link!r} is not a web address; write https://...")
        _check_words(where, "seen", claim.seen, tuple(SEEN))
        for number in claim.thresholds:
            if not isinstance(number, Threshold):
                raise RankfallError(
                    f"{where}: thresholds has {number!r}, which names no quantity; write "
                    f"Threshold({number!r}, 'above', QUANTITY)"
                )
        for value in claim.published:
            _check_words(f"{where}, published value of {value.quantity!r}", "seen", (value.seen,), OF_VALUES)
        for table, columns in claim.reads.items():
            if table not in components.names("table") and "." not in table:
                raise RankfallError(
                    f"{where} reads table {table!r}, which does not exist; allowed: {', '.join(components.names('table'))}"
                )
            unknown = sorted({*columns} - {*columns_of(table)})
            if unknown:
                raise RankfallError(
                    f"{where} reads column {unknown[0]!r} of table {table}, which has {', '.join(columns_of(table))}"
                )


def _check_words(where: str, name: str, words: tuple[str, ...], allowed: tuple[str, ...]) -> None:
    wrong = [word for word in words if word not in allowed]
    if wrong or not words:
        given = repr(wrong[0]) if wrong else "nothing"
        raise RankfallError(
            f"{where}: {name} is {given}; allowed: {', '.join(allowed)}. Only what has been read may be quoted"
        )


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
    from scipy.stats import t

    known = [float(value) for value in values if value is not None and math.isfinite(value)]
    if not known:
        raise RankfallError("there is no number to average")
    count = len(known)
    mean = math.fsum(known) / count
    if count == 1:
        return Band(mean, mean, mean, 1)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in known) / (count - 1))
    reach = float(t.ppf((1 + LEVEL) / 2, count - 1)) * deviation / math.sqrt(count)
    return Band(mean, mean - reach, mean + reach, count)


def evidence_rows(rows: DataFrame, quantity: str, line: str | None = None, x: float | None = None) -> DataFrame:
    """Return the rows of a claim's evidence with this quantity (and line and x), sorted by line, x and seed; it may be empty."""
    found = rows[rows.quantity == quantity]
    if line is not None:
        found = found[found.line == line]
    if x is not None:
        found = found[(found.x - x).abs() <= 1e-9 * max(1.0, abs(x))]
    return found.sort_values(["line", "x", "seed"])


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
    """Return the decision whose condition is the first to be true, in the order of the keywords `holds`, `in_part`, `contradicted` and
    `undecided` in the call; without a true condition it is undecided. `wants` is used only for this verdict."""
    verdict = VERDICTS[WHEN.index(next((name for name, true in when.items() if true), WHEN[-1]))]
    fields = number.fields() if isinstance(number, Band) else {"number": None if number is None else float(number)}
    return Decision(verdict, said, **fields, wants=wants if verdict == UNDECIDED else "", extends=tuple(extends))


def main_quantity(rows: DataFrame, claim: Claim) -> str:
    """Return the quantity that a claim's figure shows: the declared one, or the first of its evidence by name."""
    return claim.shown or str(sorted(rows.quantity.unique())[0])


def is_on(found: Band, threshold: Threshold) -> bool | None:
    """Return whether the whole interval lies on the threshold's side; None if the threshold is within the interval."""
    answer = compare(found, threshold)
    return None if answer == "undecided" else answer == threshold.side


def compare(found: Band, threshold: float) -> str:
    """Return `above` or `below` if the whole interval lies there, else `undecided`."""
    if found.low > threshold:
        return "above"
    return "below" if found.high < threshold else "undecided"
