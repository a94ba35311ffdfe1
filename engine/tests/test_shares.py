"""Guards that each step of each member is computed once and after the one before it, by threads with equal shares."""

import threading
from itertools import product

import pytest

from thousandfold.shares import Share, compute_shares, shares, steps_at_once


def taken_by(given: list[Share], steps: int) -> list[tuple[int, int]]:
    """Member and step, in the order of computation."""
    taken: list[tuple[int, int]] = []
    lock = threading.Lock()

    def compute(first: int, last: int, step: int, thread: int) -> None:
        with lock:
            taken.extend((member, step) for member in range(first, last))

    compute_shares(given, steps, compute)
    return taken


@pytest.mark.parametrize("members", range(1, 24))
def test_each_step_is_taken_once_and_in_order(members: int) -> None:
    several = {
        (threads, steps)
        for threads in range(1, min(members, 7) + 1)
        for steps in (1, steps_at_once(members, threads), steps_at_once(members, threads, 16), 3)
    }
    for threads, steps in several:
        taken = taken_by(shares(members, steps, threads), steps)
        assert sorted(taken) == sorted(product(range(members), range(steps)))
        for member in range(members):
            assert [step for one, step in taken if one == member] == list(range(steps))


def test_a_thread_that_fails_keeps_no_other_waiting() -> None:
    def compute(first: int, last: int, step: int, thread: int) -> None:
        if thread == 1:
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        compute_shares(shares(5, 2, 2), 2, compute)
