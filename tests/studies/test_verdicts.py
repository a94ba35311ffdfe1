"""Guards that the rule of each claim gives the verdict, the sentence and the wants of docs/claims.csv.

evidence.parquet is the table `evidence` of the run of workflow/presets/claims.yaml that docs/claims.csv keeps.
"""

from pathlib import Path

import pandas as pd

from rankfall.overview.claims import decide, describe
from rankfall.report.claim import claims
from rankfall.report.decision import Band
from studies.claims.delta_erasure.rule import stays

FOLDER = Path(__file__).parent
TEXTS = ["claim", "quantity", "line", "value_reason"]
EVIDENCE = pd.read_parquet(FOLDER / "evidence.parquet").astype(dict.fromkeys(TEXTS, object))
VERDICTS = pd.read_csv(FOLDER.parents[1] / "docs" / "claims.csv", keep_default_na=False).set_index("claim")


def test_rules_give_the_published_verdicts() -> None:
    tables, rules = {"evidence": EVIDENCE}, [rule for rule in claims() if "." not in rule.table]
    assert {rule.name for rule in rules} == {*VERDICTS.index}
    for rule in rules:
        decision = decide(rule, tables.get)
        assert decision is not None
        found = describe(rule, decision, tables.get)
        assert {name: found[name] for name in VERDICTS.columns} == VERDICTS.loc[rule.name].to_dict()


def test_a_change_that_may_be_nothing_is_no_end_of_a_loss() -> None:
    """An interval around zero that includes the loss of adding does not count as no loss."""
    none, loss = Band(-0.05, -0.3, 0.2, 8), Band(-0.3, -0.4, -0.2, 8)
    assert stays(none, Band(0.1, -0.1, 0.3, 8)) is None
    assert stays(none, Band(0.25, 0.1, 0.4, 8)) is True
    assert stays(loss, Band(0.25, 0.1, 0.4, 8)) is False
