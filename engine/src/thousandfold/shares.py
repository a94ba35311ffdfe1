"""The division of members among threads, so that all threads are busy although the steps of a member must run in order.

Five members on two threads would be three on one and two on the other. Over two steps, each thread can compute five: each takes two whole
members, and one takes the first step of the fifth member and the other then takes its second step. This is the wrap-around rule for
interruptible work (McNaughton 1959). If the number of steps is a multiple of the number of threads and all steps take equally long, no
thread waits for another. Threads wait for each other after these steps, so many short steps are computed at once.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

MEETING = 0.1  # seconds between two synchronisations of threads, short so that signals are noticed soon
MOST = 16  # largest number of steps between two synchronisations
Compute = Callable[[int, int, int, int], None]  # (first member, after the last, step, thread)


@dataclass(frozen=True)
class Share:
    """The work of one thread: all steps of some members, and some steps of the members before and after these."""

    first: int
    last: int
    before: range  # steps of member first - 1, computed first
    behind: range  # steps of member `last`, computed after the next thread has computed the earlier ones


def steps_between(members: int, threads: int, pace: float) -> int:
    """Return the number of steps until threads synchronise. A step of all members takes about `pace` seconds."""
    return steps_at_once(members, threads, min(MOST, int(MEETING / pace)))


def steps_at_once(members: int, threads: int, most: int = 1) -> int:
    """Return the largest number of steps up to `most` with equal shares, or the smallest number with equal shares. For one thread: 1."""
    least = threads if 1 < threads < members and members % threads else 1
    return least * max(1, most // least) if threads > 1 else 1


def shares(members: int, steps: int, threads: int) -> list[Share]:
    """Return the share of each thread."""
    least = steps_at_once(members, threads)
    if least == 1 or steps % least:
        edges = [members * i // threads for i in range(threads + 1)]
        return [Share(first, last, range(0), range(0)) for first, last in pairwise(edges)]
    # Ends of the shares: a member, and the number of its steps that the thread computes.
    cuts = [divmod(members * steps // threads * i, steps) for i in range(threads + 1)]
    return [
        Share(start + (taken > 0), last, range(steps - taken if taken else 0), range(steps - remaining, steps))
        for (start, taken), (last, remaining) in pairwise(cuts)
    ]


def compute_shares(portions: Sequence[Share], steps: int, compute: Compute) -> None:
    """Compute the shares, each in its thread."""
    if len(portions) == 1:
        take(0, portions, steps, compute, [])
        return
    begun = [threading.Event() for _ in portions]  # set when the steps `before` of a thread are done
    with ThreadPoolExecutor(len(portions)) as pool:
        list(pool.map(lambda thread: take(thread, portions, steps, compute, begun), range(len(portions))))


def take(
    thread: int, portions: Sequence[Share], steps: int, compute: Compute, begun: Sequence[threading.Event]
) -> None:
    """Compute the share of a thread. `begun`: set by each thread after its first steps, for which the previous one waits."""
    share = portions[thread]
    try:
        for step in share.before:
            compute(share.first - 1, share.first, step, thread)
    finally:  # after an error too, so that no thread waits forever
        if begun:
            begun[thread].set()
    for step in range(steps if share.last > share.first else 0):
        compute(share.first, share.last, step, thread)
    if share.behind:
        begun[thread + 1].wait()
    for step in share.behind:
        compute(share.last, share.last + 1, step, thread)
