"""Measure what a device reaches at best: copies of much memory, and products of large matrices in three number formats."""

import time
from collections.abc import Callable

import torch

from benchmarks.gpu.limits import Card
from benchmarks.gpu.rows import Rows

FORMATS = {"float32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16}


def wait(device: torch.device) -> None:
    """Wait until a GPU has done its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def time_runs(run: Callable[[], object], device: torch.device, runs: int) -> float:
    """Return the mean seconds of some runs."""
    wait(device)
    began = time.perf_counter()
    for _ in range(runs):
        run()
    wait(device)
    return (time.perf_counter() - began) / runs


def seconds_of(run: Callable[[], object], device: torch.device, seconds: float) -> float:
    """Return the mean seconds of as many runs as take about `seconds`, after a first one that is not counted."""
    run()
    return time_runs(run, device, max(1, min(10_000, round(seconds / max(time_runs(run, device, 1), 1e-6)))))


def measure_card(rows: Rows, device: torch.device, tiny: bool) -> Card:
    seconds, width = (0.01, 128) if tiny else (1.0, 8192)
    source = torch.empty(2**20 if tiny else 2**31, dtype=torch.uint8, device=device).fill_(1)
    target = torch.empty_like(source)
    moved = 2 * source.numel() / seconds_of(lambda: target.copy_(source), device, seconds)
    rows.add("copy, read and written", moved, "bytes/s")
    for name in FORMATS:
        if name == "tf32" and device.type != "cuda":
            rows.add(f"product of matrices, {name}", status="skipped", reason="TF32 is a format of GPUs")
        else:
            rows.add(f"product of matrices, {name}", rate_of_products(name, width, device, seconds), "operations/s")
    return Card(rate_of_products("float32", width, device, seconds), moved)


def rate_of_products(name: str, width: int, device: torch.device, seconds: float) -> float:
    """Return the operations a second of a product of two square matrices. Random ones, since zeros are multiplied faster."""
    a, b = torch.randn(2, width, width, device=device).to(FORMATS[name])
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    try:
        return 2 * width**3 / seconds_of(lambda: a @ b, device, seconds)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
