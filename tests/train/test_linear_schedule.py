"""Guards the straight line to zero."""

from rankfall.train.schedules.linear import linear


def test_starts_at_one_and_ends_one_epoch_short_of_zero():
    assert [linear(epoch, 4) for epoch in range(4)] == [1.0, 0.75, 0.5, 0.25]
