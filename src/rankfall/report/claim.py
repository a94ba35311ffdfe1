"""Claims about depth: a published statement, its source, and the rule by which tables decide it. A claim is a folder of its name:
`statement.yaml` says who claims what, `experiment.py` fills the table `evidence` (or `experiment: NAME` names the folder whose experiment
it shares), and `rule.py` has `decide` and each `Threshold` that it compares with.

A rule is committed before the numbers exist: `threshold` states it in words, and `decide` applies it.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, InstanceOf, StringConstraints, ValidationError
from pydantic.dataclasses import dataclass

from rankfall import components
from rankfall.annotations import DataFrame
from rankfall.errors import RankfallError, describe_error
from rankfall.report.decision import Decision, Read, Threshold
from rankfall.report.quantities import STATEMENT, read_statement, sources, user_quantities
from rankfall.report.schema import schema

SEEN = {  # parts of a source that have been read
    "table": "a table of the paper",
    "figure": "a figure of the paper",
    "text": "the paper's text",
    "theorem": "the theorem and its proof",
    "abstract": "the abstract alone",
    "code": "the authors' code",
    "second-hand": "what others have written about it",
}
Words = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Part = Literal["table", "figure", "text", "theorem", "abstract", "code", "second-hand"]  # the keys of SEEN
EVIDENCE = {"evidence": ("quantity", "line", "x", "seed", "value")}
STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=STRICT)
class Published:
    """A number of the source for a quantity and line of the evidence at `x`, which the figure shows beside the measured one."""

    quantity: str
    line: str
    x: float
    value: float
    seen: Literal["table", "figure", "text", "code"]  # parts from which a number can be quoted
    place: str  # such as "table 2"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Claim:
    """A published statement and the rule that decides it. `says`: the statement in a sentence; `setting`: what is measured here;
    `threshold`: when it counts as true, and why; `thresholds`: the numbers of that rule, which `decide` compares with and figures draw;
    `reads`: the tables that decide it, with their columns; `changed`: changes of rule or experiment after numbers were seen, and why;
    `defects`: errors in published code, with file and line."""

    name: str
    says: Words
    paper: Words  # authors, title, year
    link: Annotated[str, StringConstraints(pattern=r"^https://\S+$")]
    seen: Annotated[tuple[Part, ...], Field(min_length=1)]
    setting: Words
    threshold: Words
    decide: Callable[[Read], Decision | None]  # returns None if the run has no data that could decide it
    reads: Mapping[str, tuple[str, ...]] = Field(default_factory=lambda: EVIDENCE)
    thresholds: tuple[InstanceOf[Threshold], ...] = ()
    published: tuple[Published, ...] = ()
    changed: str = ""  # empty if nothing was changed
    defects: str = ""
    shown: str = ""  # the quantity of its figure; by default the first by name
    place: int = 1000
    table: str = ""  # the experiment that measures it

    def texts(self) -> dict[str, str]:
        """Return the texts that tables and pages have of a claim."""
        names = ("says", "paper", "link", "setting", "threshold", "changed", "defects")
        seen = ", ".join(SEEN[word] for word in self.seen)
        return {"claim": self.name, "seen": seen} | {name: getattr(self, name) for name in names}


def claims() -> tuple[Claim, ...]:
    """Return all claims of the studies and of the users' modules that this process knows, in the order of `place`."""
    by_name: dict[str, Claim] = {}
    for folder in sources("claim", user_quantities()):
        claim = load_claim(folder)
        if claim.name in by_name:
            raise RankfallError(
                f"claim {claim.name!r} of {folder} has a name that is taken by {by_name[claim.name].table}\nChoose another name"
            )
        by_name[claim.name] = claim
    return tuple(sorted(by_name.values(), key=lambda claim: claim.place))


def load_claim(folder: str) -> Claim:
    """Return the claim of a folder, which is named like a component: by its name, or by its module if it is a user's."""
    location = components.locate("claim", folder)
    assert location is not None
    parent, _, name = folder.rpartition(".")
    path = location.file.with_name(STATEMENT)
    fields = read_statement(path)
    experiment = fields.pop("experiment", name)
    table = f"{parent}.{experiment}" if parent else experiment
    if experiment != name and not (path.parents[1] / experiment / components.EXPERIMENT).is_file():
        raise RankfallError(
            f"{path}: experiment is {experiment!r}\nName a folder beside this one that has an experiment.py"
        )
    decide = components.load("claim", folder)
    names = vars(inspect.getmodule(decide))
    thresholds = names.get("THRESHOLDS", tuple(value for value in names.values() if isinstance(value, Threshold)))
    try:
        return Claim(**{**fields, "name": name, "table": table, "decide": decide, "thresholds": thresholds})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise RankfallError(
            f"{path}: {where} is {first.get('input')!r}: {first['msg']}\n"
            "docs/components/claim.md lists the keys of a statement; numbers of a rule are Threshold(0.5, 'above', QUANTITY)"
        ) from None


def check_claims() -> tuple[Claim, ...]:
    """Return all claims. Raise an error for one that cannot be read, or reads unknown tables or columns."""
    try:
        declared = claims()
    except (ImportError, AttributeError, NameError, SyntaxError, TypeError, ValueError) as error:
        raise RankfallError(f"a claim cannot be read: {describe_error(error)}") from error
    tables = components.names("table")
    for claim in declared:
        where = f"claim {claim.name!r} of {claim.table}"
        for table, columns in claim.reads.items():
            if table not in tables and "." not in table:
                raise RankfallError(
                    f"{where} reads table {table!r}, which does not exist; allowed: {', '.join(tables)}"
                )
            known = [column.name for column in schema(table).columns]
            unknown = sorted({*columns} - {*known})
            if unknown:
                raise RankfallError(
                    f"{where} reads column {unknown[0]!r} of table {table}, which has {', '.join(known)}"
                )
    return declared


def main_quantity(rows: DataFrame, claim: Claim) -> str:
    """Return the quantity that a claim's figure shows: the declared one, or the first of its evidence by name."""
    return claim.shown or str(sorted(rows.quantity.unique())[0])
