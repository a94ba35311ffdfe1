"""Guards how the operations of a step are counted."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # benchmarks are not installed

from benchmarks.operations import REST, shares


def test_shares_are_of_all_that_was_recorded() -> None:
    found = shares({"aten::bmm": 3.0, "aten::baddbmm": 1.0, "aten::copy_": 2.0, "an operation of another kind": 2.0})
    assert found["products of matrices"] == 0.5 and found["copies"] == 0.25 and found[REST] == 0.25
    assert sum(found.values()) == pytest.approx(1.0)
