"""Check that the rule of each claim gives the verdict, the sentence and the wants of docs/claims.csv, and the vocabulary of rules."""

from pathlib import Path

import pandas as pd
import pytest

from rankfall.overview.claims import decide, describe
from rankfall.report.claim import claims
from rankfall.report.decision import CONTRADICTED, HOLDS, IN_PART, UNDECIDED, Band, judge
from studies.claims.delta_erasure.rule import stays
from studies.claims.rules import by_known_parts, by_need, by_parts, true_of_all, true_of_any

FOLDER = Path(__file__).parent
TEXTS = ["claim", "quantity", "line", "value_reason"]
# The table `evidence` of the run of workflow/presets/claims.yaml that docs/claims.csv keeps.
EVIDENCE = pd.read_parquet(FOLDER / "evidence.parquet").astype(dict.fromkeys(TEXTS, object))
VERDICTS = pd.read_csv(FOLDER.parents[1] / "docs" / "claims.csv", keep_default_na=False).set_index("claim")


def test_rules_give_the_published_verdicts() -> None:
    evidence, rules = dict(tuple(EVIDENCE.groupby("claim"))), [rule for rule in claims() if "." not in rule.table]
    assert {rule.name for rule in rules} == {*VERDICTS.index}
    for rule in rules:
        read = {"evidence": evidence[rule.name]}.get
        decision = decide(rule, read)
        assert decision is not None
        row = describe(rule, decision, read)
        assert {name: row[name] for name in VERDICTS.columns} == VERDICTS.loc[rule.name].to_dict()


def test_a_change_that_may_be_nothing_is_no_end_of_a_loss() -> None:
    """An interval around zero that includes the loss of adding does not count as no loss."""
    none, loss = Band(-0.05, -0.3, 0.2, 8), Band(-0.3, -0.4, -0.2, 8)
    assert stays(none, Band(0.1, -0.1, 0.3, 8)) is None
    assert stays(none, Band(0.25, 0.1, 0.4, 8)) is True
    assert stays(loss, Band(0.25, 0.1, 0.4, 8)) is False


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ((True, True), HOLDS),
        ((True, False), IN_PART),
        ((False, False), CONTRADICTED),
        ((True, None), UNDECIDED),
        ((False, None), UNDECIDED),
        ((True, False, None), IN_PART),
    ],
)
def test_a_part_without_an_answer_decides_nothing(parts, verdict):
    assert judge("said", None, "more seeds", **by_parts(parts)).verdict == verdict


def test_one_part_is_enough_to_fail_all_or_to_hold_for_any() -> None:
    """A part without an answer decides neither."""
    assert [true_of_all(parts) for parts in ((True, True), (True, None), (None, False))] == [True, None, False]
    assert [true_of_any(parts) for parts in ((None, True), (None, False), (False, False))] == [True, None, False]


@pytest.mark.parametrize(
    ("parts", "known", "need"),
    [
        ((True, True), HOLDS, HOLDS),
        ((True, False), IN_PART, IN_PART),
        ((False, True), IN_PART, CONTRADICTED),
        ((False, False), CONTRADICTED, CONTRADICTED),
        ((True, None), UNDECIDED, UNDECIDED),
        ((False, None), UNDECIDED, CONTRADICTED),
    ],
)
def test_parts_that_must_be_known_and_a_part_that_is_needed(parts, known, need):
    assert judge("said", None, "more seeds", **by_known_parts(parts)).verdict == known
    assert judge("said", None, "more seeds", **by_need(*parts)).verdict == need
