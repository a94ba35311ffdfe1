"""Time on a device, which runs behind the program that gives it work."""

import time
from collections.abc import Callable

import torch


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds_of(run: Callable[[], object], device: torch.device, about: float) -> float:
    """Of one run: the mean of as many as take about so many seconds, after one that warms up and one that says how many."""
    run()
    wait(device)
    began = time.perf_counter()
    run()
    wait(device)
    runs = max(1, min(10_000, round(about / max(time.perf_counter() - began, 1e-6))))
    began = time.perf_counter()
    for _ in range(runs):
        run()
    wait(device)
    return (time.perf_counter() - began) / runs
