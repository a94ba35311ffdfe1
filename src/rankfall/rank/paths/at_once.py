"""Independent parts of a computation on as many threads as torch has, each part on one thread.

Products of a few hundred rows gain little from a second thread, but two of them side by side take half the time.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def at_once(compute: Callable[[Item], Result], items: Iterable[Item], most: int) -> list[Result]:
    """Return `compute` of each item, in order, with at most `most` at a time.

    `compute` is called from several threads and must set the torch modes that it needs itself.
    """
    given, threads = list(items), torch.get_num_threads()
    beside = min(threads, len(given), most)
    if beside < 2:
        return [compute(item) for item in given]
    torch.set_num_threads(1)  # for each thread that starts from here on
    try:
        with ThreadPoolExecutor(beside) as pool:
            return list(pool.map(compute, given))
    finally:
        torch.set_num_threads(threads)
