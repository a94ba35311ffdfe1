"""Check path counts against exact integers and the published curve."""

import math
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankfall.measure.context import Context
from rankfall.rank.path_counts.measure import path_counts
from rankfall.report.conform import conform


def test_against_the_published_curve() -> None:
    rows = path_counts(Context())
    compared = [row for row in rows if row["published"] is not None]
    assert len(compared) > 200
    assert {row["model"] for row in compared} >= {"GPT-3", "T5-11B", "Bert-Base/ViT-B", "ViT-H"}
    assert max(abs(row["deviation"]) for row in compared) < 1e-4
    assert len(conform("path_counts", rows)) == len(rows)


@given(st.integers(1, 96), st.integers(1, 128))
def test_against_exact_integers(depth: int, heads: int) -> None:
    rows = path_counts(Context(), models=[f"any: {depth} x {heads}"])
    assert sum(row["proportion"] for row in rows) == pytest.approx(1, abs=1e-11)
    for row in rows:
        assert row["log10_paths"] == pytest.approx(math.log10(comb(depth, row["length"]) * heads ** row["length"]))
        exact = Fraction(comb(depth, row["length"]) * heads ** row["length"], (1 + heads) ** depth)
        assert row["proportion"] == pytest.approx(float(exact), rel=1e-10)
