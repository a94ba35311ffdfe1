"""Processor time of a piece of work in one thread."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch


def time_calls(work: Callable[[], object], calls: int) -> float:
    """Return seconds of this thread's processor time of one call, mean over so many."""
    began = time.thread_time()
    for _ in range(calls):
        work()
    return (time.thread_time() - began) / calls


@contextmanager
def one_thread() -> Iterator[None]:
    """Within, PyTorch computes in the thread that is timed."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
