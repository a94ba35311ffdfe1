"""Guards the rank correlation of the figure that has rank and identity on one axis."""

import pandas as pd
import pytest

from rankfall.overview.together import spearman


def test_rank_correlation_by_hand() -> None:
    assert spearman(pd.Series([1, 2, 3, 4]), pd.Series([10, 30, 20, 40])) == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert spearman(pd.Series([1, 2, 3]), pd.Series([9, 4, 1])) == -1
