"""What somebody has said about depth, with its source and the rule by which tables decide it. A quantity declares its own in `claim.py` of
its folder, as `CLAIMS`; most have a folder of their own, `claims/NAME/`, with an experiment in `measure.py` that fills table `evidence`.

The rule is to be committed before the numbers are there: `threshold` says it in words, `decide` applies it.
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
WHEN = ("holds", "in_part", "contradicted", "undecided")  # as `judge` has them
SEEN = {  # what of a source has been read
    "table": "a table of the paper",
    "figure": "a figure of the paper",
    "text": "the paper's text",
    "theorem": "the theorem and its proof",
    "abstract": "the abstract alone",
    "code": "the authors' code",
    "second-hand": "what others have written about it",
}
OF_VALUES = ("table", "figure", "text", "code")  # enough to quote a number
LINK = re.compile(r"https://\S+")
LEVEL = 0.95  # of an interval over seeds
SIDES = ("above", "below", "at", "split at")  # split at: some lines belong above, others below


@dataclass(frozen=True)
class Published:
    """A number of the source, beside ours in the figure: of a quantity and line of the evidence, at `x`."""

    quantity: str
    line: str
    x: float
    value: float
    seen: str  # one of OF_VALUES
    place: str  # such as "table 2"


class Threshold(float):
    """A number of a rule that knows what it is of: the rule asks that `quantity` lies on this `side`. A quantity of the evidence has a line
    in figures; what no axis shows is said in words. `where`: for which lines, and at which place."""

    side: str
    quantity: str
    where: str

    def __new__(cls, value: float, side: str, quantity: str, where: str = "") -> Self:
        if side not in SIDES or not quantity.strip():
            raise RankfallError(
                f"threshold {value:g} of {quantity!r}: side is {side!r}; allowed: {', '.join(SIDES)}, and a quantity has a name"
            )
        made = super().__new__(cls, value)
        made.side, made.quantity, made.where = side, quantity, where
        return made

    def __str__(self) -> str:
        """In a caption."""
        what, _ = name_axes(self.quantity)
        return f"{what} {self.side} {float(self):.3g}" + (f" ({self.where})" if self.where else "")


def name_axes(quantity: str) -> tuple[str, str]:
    """Of "what, by what" what is on the axis of values, and what is on the other; one that says no more than "what" leaves that empty."""
    what, _, by = quantity.rpartition(", by ")
    return (what, by) if what else (quantity, "")


def within(centre: float, reach: float, quantity: str, where: str = "") -> tuple[Threshold, Threshold]:
    """The two ends of what lies near `centre`."""
    return Threshold(centre - reach, "above", quantity, where), Threshold(centre + reach, "below", quantity, where)


@dataclass(frozen=True)
class Extension:
    """Says whether a statement is true in a setting that the bench adds to the source's, such as another mask; None: not decided."""

    setting: str  # completes "extends to ...", numbers in brackets
    true: bool | None

    def __str__(self) -> str:
        verb = {True: "Extends to", False: "Does not extend to", None: "Undecided for"}[self.true]
        return f"{verb} {self.setting}."


@dataclass(frozen=True)
class Decision:
    """What the tables say in the source's own setting: one of VERDICTS, a sentence with the numbers, and the number that decides, with its
    interval over seeds. What the bench adds to that setting is in `extends` and changes no verdict. An undecided claim says in `wants` what
    would decide it."""

    verdict: str
    said: str
    number: float | None = None
    low: float | None = None
    high: float | None = None
    seeds: int = 0
    wants: str = ""
    extends: tuple[Extension, ...] = ()
    cells: tuple[str, ...] = ()  # keys of the networks that decide it; empty: all that the tables it reads have

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise RankfallError(f"{self.verdict!r} is no verdict; allowed: {', '.join(VERDICTS)}")
        if (self.verdict == UNDECIDED) != bool(self.wants):
            raise RankfallError(
                f"verdict {self.verdict!r}: `wants` says what would decide an undecided claim, and no other"
            )


Read = Callable[[str], Any]  # a table, or None where the run has none; of `evidence` the claim's own rows


@dataclass(frozen=True)
class Claim:
    """`says`: the statement in a sentence; `setting`: what is measured here; `threshold`: when it counts as true, and why there;
    `thresholds`: the numbers of that rule, which `decide` compares with and figures draw; `reads`: the tables that decide it, and the
    columns of each; `changed`: what of rule or experiment was changed after numbers were seen, and why; `defects`: what is wrong in
    published code, with file and line."""

    name: str
    says: str
    paper: str  # authors, title, year
    link: str
    seen: tuple[str, ...]  # of SEEN
    setting: str
    threshold: str
    decide: Callable[[Read], Decision | None]  # None: the run has nothing that could decide it
    reads: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: {"evidence": ("quantity", "line", "x", "seed", "value")}
    )
    thresholds: tuple[Threshold, ...] = ()
    published: tuple[Published, ...] = ()
    changed: str = ""  # empty: nothing
    defects: str = ""
    shown: str = ""  # the quantity of its figure; by default the first by name
    place: int = 1000
    study: str = ""
    table: str = ""  # the quantity that declares it


def claims() -> tuple[Claim, ...]:
    """All that quantities declare, ours and those of users."""
    found: tuple[Claim, ...] = declarations_of("claim")
    return found


def check_claims(columns_of: Callable[[str], Iterable[str]]) -> None:
    """Refuses a claim without a source, with a published value that nobody has seen, or that reads what there is not. `columns_of(table)`:
    what a table has."""
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
            raise RankfallError(f"{where}: link {claim.link!r} leads nowhere; write https://...")
        _check_words(where, "seen", claim.seen, tuple(SEEN))
        for number in claim.thresholds:
            if not isinstance(number, Threshold):
                raise RankfallError(
                    f"{where}: thresholds has {number!r}, which does not say what it is of; write "
                    f"Threshold({number!r}, 'above', QUANTITY)"
                )
        for value in claim.published:
            _check_words(f"{where}, published value of {value.quantity!r}", "seen", (value.seen,), OF_VALUES)
        for table, columns in claim.reads.items():
            if table not in components.names("table") and "." not in table:
                raise RankfallError(
                    f"{where} reads table {table!r}, which there is not; allowed: {', '.join(components.names('table'))}"
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
            f"{where}: {name} is {given}; allowed: {', '.join(allowed)}. What nobody has read is not quoted"
        )


@dataclass(frozen=True)
class Band:
    """A mean over seeds with its interval (Student's t). Of one seed, or of equal ones, the interval is the number itself."""

    mean: float
    low: float
    high: float
    seeds: int

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.mean:.3g}"
        return f"{self.mean:.3g} ({self.low:.3g} to {self.high:.3g})"

    def fields(self) -> dict[str, Any]:
        """For a verdict."""
        return {"number": self.mean, "low": self.low, "high": self.high, "seeds": self.seeds}


def band(values: Iterable[float]) -> Band:
    from scipy.stats import t

    known = [float(value) for value in values if value is not None and math.isfinite(value)]
    if not known:
        raise RankfallError("no number to take a mean of")
    count = len(known)
    mean = math.fsum(known) / count
    if count == 1:
        return Band(mean, mean, mean, 1)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in known) / (count - 1))
    reach = float(t.ppf((1 + LEVEL) / 2, count - 1)) * deviation / math.sqrt(count)
    return Band(mean, mean - reach, mean + reach, count)


def evidence_rows(rows: DataFrame, quantity: str, line: str | None = None, x: float | None = None) -> DataFrame:
    """The rows of a claim's evidence that are this, by line, x and seed; empty where there are none."""
    found = rows[rows.quantity == quantity]
    if line is not None:
        found = found[found.line == line]
    if x is not None:
        found = found[(found.x - x).abs() <= 1e-9 * max(1.0, abs(x))]
    return found.sort_values(["line", "x", "seed"])


def band_of(rows: DataFrame, quantity: str, line: str, x: float) -> Band:
    """Over the seeds of a point."""
    return band(evidence_rows(rows, quantity, line, x).value)


def change_of(rows: DataFrame, quantity: str, line: str, first: float, last: float) -> Band:
    """From one x to another, seed by seed."""
    before, after = (evidence_rows(rows, quantity, line, x).value.to_numpy() for x in (first, last))
    return band(after - before)


def judge(
    said: str, number: Band | float | None, wants: str = "", extends: Iterable[Extension] = (), **when: bool
) -> Decision:
    """Return the verdict whose condition is the first to be true, in the order in which they are given: `holds`, `in_part`, `contradicted`,
    `undecided`; undecided where none is. `wants` is for this one alone."""
    verdict = VERDICTS[WHEN.index(next((name for name, true in when.items() if true), WHEN[-1]))]
    fields = number.fields() if isinstance(number, Band) else {"number": None if number is None else float(number)}
    return Decision(verdict, said, **fields, wants=wants if verdict == UNDECIDED else "", extends=tuple(extends))


def main_quantity(rows: DataFrame, claim: Claim) -> str:
    """Of its evidence, what its figure shows: the one that it declares, else the first by name."""
    return claim.shown or str(sorted(rows.quantity.unique())[0])


def is_on(found: Band, threshold: Threshold) -> bool | None:
    """Return whether the whole interval lies on the threshold's side, None where it has both."""
    answer = compare(found, threshold)
    return None if answer == "undecided" else answer == threshold.side


def compare(found: Band, threshold: float) -> str:
    """`above` or `below` where the whole interval lies there; else `undecided`."""
    if found.low > threshold:
        return "above"
    return "below" if found.high < threshold else "undecided"
