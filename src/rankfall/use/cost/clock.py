"""Processor time of calls in one thread."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch


def time_calls(work: Callable[[], object], calls: int) -> float:
    """Return the mean processor time of one call in this thread, in seconds."""
    began = time.thread_time()
    for _ in range(calls):
        work()
    return (time.thread_time() - began) / calls


@contextmanager
def one_thread() -> Iterator[None]:
    """Restrict PyTorch to one thread, the one that is timed."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
