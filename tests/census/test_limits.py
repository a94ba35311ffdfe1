"""A function in a process of its own: what it gives, and what becomes of one that raises, hangs, eats memory or is killed."""

import os
import signal
import time

from rankfall.census.limits import MEMORY, TIME, run_within

GIGABYTES = 4.0


def spin() -> None:
    while True:
        pass


def eat() -> int:
    return len([bytearray(2**28) for _ in range(100)])


def test_the_value_comes_back_with_its_cost() -> None:
    spent = run_within(lambda a, b: {"sum": a + b}, 1, 2, seconds=10, gigabytes=GIGABYTES)
    assert (spent.value, spent.reason, spent.limit) == ({"sum": 3}, "", "")
    assert spent.megabytes > 0


def test_one_that_computes_for_ever_is_ended() -> None:
    began = time.monotonic()
    spent = run_within(spin, seconds=1, gigabytes=GIGABYTES)
    assert spent.value is None and spent.limit == TIME and "more than 1 s" in spent.reason
    assert time.monotonic() - began < 30


def test_one_that_eats_memory_is_ended_and_says_so() -> None:
    spent = run_within(eat, seconds=10, gigabytes=2)
    assert spent.value is None and spent.limit == MEMORY and "2.0 GB of memory" in spent.reason
    assert spent.megabytes < 3000


def test_one_that_is_killed_costs_no_other() -> None:
    spent = run_within(lambda: os.kill(os.getpid(), signal.SIGKILL), seconds=10, gigabytes=GIGABYTES)
    assert spent.value is None and "SIGKILL" in spent.reason
    assert run_within(lambda: 1, seconds=10, gigabytes=GIGABYTES).value == 1
