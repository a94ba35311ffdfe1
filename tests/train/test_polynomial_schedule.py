"""Guards the published schedule: a straight line up, then a power of what is left."""

import pytest

from rankfall.train.schedules.polynomial import polynomial


def test_by_hand() -> None:
    assert [polynomial(epoch, 7, warmup=3) for epoch in range(7)] == pytest.approx(
        [0.25, 0.5, 0.75, 1, 0.75, 0.5, 0.25]
    )
    assert [polynomial(epoch, 4, power=2.0) for epoch in range(4)] == pytest.approx([1, 9 / 16, 4 / 16, 1 / 16])


def test_never_zero_nor_above_one_even_if_all_is_warm_up() -> None:
    for warmup in (0, 5, 9, 50):
        assert all(0 < polynomial(epoch, 10, warmup=warmup, power=1.5) <= 1 for epoch in range(10))
