"""Which members each thread computes, so that all threads are busy although a member's steps follow one another.

Five members on two threads would be three on one and two on the other. Over two steps both can compute five: each takes two members
whole, and of the member between them one takes the first step and the other, when that is done, the second. This is the wrap-around
rule for interruptible work (McNaughton 1959): with as many steps as threads, or a multiple, no thread waits for another if all steps take
equally long. Threads meet after these steps; so of short steps many are computed before they do.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

MEETING = 0.1  # seconds that threads compute before they wait for each other, so that a signal is soon heard; longer steps as above
MOST = 16  # steps in that time
Compute = Callable[[int, int, int, int], None]  # (first member, after the last, step, thread)


@dataclass(frozen=True)
class Share:
    """Of one thread: the members of which it takes all steps, and what it takes of the members before and behind them."""

    first: int
    last: int
    before: range  # steps of member first - 1, taken before all else
    behind: range  # steps of member `last`, taken when the next thread has taken those before them


def steps_between(members: int, threads: int, pace: float) -> int:
    """Steps until threads meet, each of which takes about `pace` seconds for all members."""
    return steps_at_once(members, threads, min(MOST, int(MEETING / pace)))


def steps_at_once(members: int, threads: int, most: int = 1) -> int:
    """Of how many steps, at most `most`, the shares are equal; else of the fewest that are. One thread waits for nobody."""
    least = threads if 1 < threads < members and members % threads else 1
    return least * max(1, most // least) if threads > 1 else 1


def shares(members: int, steps: int, threads: int) -> list[Share]:
    """The share of each thread."""
    least = steps_at_once(members, threads)
    if least == 1 or steps % least:
        edges = [members * i // threads for i in range(threads + 1)]
        return [Share(first, last, range(0), range(0)) for first, last in pairwise(edges)]
    # Where a thread's share ends: a member, and how many of its steps this thread takes.
    cuts = [divmod(members * steps // threads * i, steps) for i in range(threads + 1)]
    return [
        Share(start + (taken > 0), last, range(steps - taken if taken else 0), range(steps - left, steps))
        for (start, taken), (last, left) in pairwise(cuts)
    ]


def compute_shares(given: Sequence[Share], steps: int, compute: Compute) -> None:
    """Has each thread compute its share."""
    if len(given) == 1:
        take(0, given, steps, compute, [])
        return
    begun = [threading.Event() for _ in given]  # the steps that a thread takes before all else are done
    with ThreadPoolExecutor(len(given)) as pool:
        list(pool.map(lambda thread: take(thread, given, steps, compute, begun), range(len(given))))


def take(thread: int, given: Sequence[Share], steps: int, compute: Compute, begun: Sequence[threading.Event]) -> None:
    own = given[thread]
    try:
        for step in own.before:
            compute(own.first - 1, own.first, step, thread)
    finally:  # whatever happens, nobody waits for ever
        if begun:
            begun[thread].set()
    for step in range(steps if own.last > own.first else 0):
        compute(own.first, own.last, step, thread)
    if own.behind:
        begun[thread + 1].wait()
    for step in own.behind:
        compute(own.last, own.last + 1, step, thread)
