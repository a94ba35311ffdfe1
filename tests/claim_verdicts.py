"""Evidence of known answer for the rules of claims."""

from collections.abc import Mapping

import pandas as pd

from rankfall.overview.claims import decide
from rankfall.report.claim import Claim, claims
from rankfall.report.decision import CONTRADICTED, HOLDS, IN_PART, Decision

SEEDS = 3
Values = Mapping[tuple[str, str], Mapping[float, float | None]]  # (quantity, line) -> x -> value


def evidence(claim: str, values: Values) -> pd.DataFrame:
    """Return the table `evidence` of a claim whose seeds all have the same values. None: no number."""
    return pd.DataFrame(
        [
            {"claim": claim, "quantity": quantity, "line": line, "x": float(x), "seed": seed, "value": value}
            for (quantity, line), points in values.items()
            for x, value in points.items()
            for seed in range(SEEDS)
        ]
    ).assign(value=lambda table: table.value.astype(float), value_reason=None)


def decide_on(claim: str, values: Values) -> Decision:
    """Return what the rule of a claim says of these values."""
    found = decide(claim_named(claim), {"evidence": evidence(claim, values)}.get)
    assert found is not None
    return found


def claim_named(name: str) -> Claim:
    (claim,) = (one for one in claims() if one.name == name)
    return claim


def check_verdicts(claim: str, holds: Values, in_part: Values, contradicted: Values) -> None:
    """Assert that the rule of a claim can say each of the three verdicts: on one table each."""
    found = [decide_on(claim, values).verdict for values in (holds, in_part, contradicted)]
    assert found == [HOLDS, IN_PART, CONTRADICTED]
