"""The page's chart of evidence: the numbers, and the thresholds of rules on the same quantity."""

from collections.abc import Callable

from rankfall.annotations import DataFrame
from rankfall.report.claim import claims
from rankfall.report.decision import SIDES
from rankfall.report.page.chart import Chart, Level

MOST = 2  # thresholds of a rule on one side of a quantity, such as one for each of two kinds of models
# Each level has a name and a column.
LEVELS = [(f"rule: {side}" + f" ({at + 1})" * (at > 0), side, at) for side in SIDES for at in range(MOST)]


def rule(side: str, at: int) -> Callable[[DataFrame], list[float]]:
    """Return a function that gives each row of the evidence the `at`-th threshold of its claim's rule on its quantity and this side, or
    NaN."""

    def column(rows: DataFrame) -> list[float]:
        found: dict[tuple[str, str], list[float]] = {}
        for claim in claims():
            for number in claim.thresholds:
                if number.side == side:
                    found.setdefault((claim.name, number.quantity), []).append(float(number))
        return [
            dict(enumerate(found.get(one, ()))).get(at, float("nan"))
            for one in zip(rows.claim.to_numpy(), rows.quantity.to_numpy(), strict=True)
        ]

    return column


CHARTS = (
    Chart(
        "evidence",
        "What decides a claim",
        "The numbers that the experiment of a claim has measured. Choose the claim and the quantity, whose name says what is on both axes.",
        "x",
        "value",
        "what the quantity is by",
        "value",
        line="line",
        choose=("claim", "quantity"),
        named_by="quantity",
        scale="wide",
        beside=tuple(Level(name, name) for name, _, _ in LEVELS),
        derive={name: rule(side, at) for name, side, at in LEVELS},
        study="claims",
        place=10,
    ),
)
