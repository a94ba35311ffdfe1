"""Known answers of the vocabulary of rules."""

import pytest

from rankfall.report.decision import CONTRADICTED, HOLDS, IN_PART, UNDECIDED, judge
from studies.claims.rules import by_known_parts, by_need, by_parts, true_of_all, true_of_any


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
