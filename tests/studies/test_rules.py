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


def test_one_part_that_fails_is_enough_and_one_without_an_answer_is_not():
    assert true_of_all((True, True)) is True
    assert true_of_all((True, None)) is None
    assert true_of_all((None, False)) is False


def test_one_part_that_holds_is_enough_for_any() -> None:
    assert true_of_any((None, True)) is True
    assert true_of_any((None, False)) is None
    assert true_of_any((False, False)) is False


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
