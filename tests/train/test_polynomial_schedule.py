"""Guards the published schedule: a straight line up, then a power of what is left."""

import pytest

from rankfall.train.schedules.polynomial import polynomial


def test_by_hand() -> None:
    assert [polynomial(epoch, 7, warmup=3) for epoch in range(7)] == pytest.approx(
        [0.25, 0.5, 0.75, 1, 0.75, 0.5, 0.25]
    )
    assert [polynomial(epoch, 4, power=2.0) for epoch in range(4)] == pytest.approx([1, 9 / 16, 4 / 16, 1 / 16])
