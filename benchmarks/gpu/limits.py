"""Measure what a device reaches at best, and count what a step of one member needs: this limits the rate of steps.

`unfused` counts the bytes that the operations of a step read and write as they are called. A higher rate needs fused operations. `state`
counts the bytes that remain if every activation stays on the chip: weights are read forward and backward, gradients written, and the
optimiser reads weights, gradients and its state and writes weights and state.
"""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.gpu.rows import Card, Rows, Work
from rankfall.train.members import Members

FORMATS = {"float32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16}


class Traffic(TorchDispatchMode):
    """Counts the bytes that operations read and write. Views and allocations count as none."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        arguments = [leaf for leaf in tree_leaves((args, kwargs or {})) if isinstance(leaf, Tensor)]
        results = [leaf for leaf in tree_leaves(output) if isinstance(leaf, Tensor)]
        storages = {tensor.untyped_storage().data_ptr() for tensor in arguments}
        shared = results and all(tensor.untyped_storage().data_ptr() in storages for tensor in results)
        view = shared and not func._schema.is_mutable
        if not view and "empty" not in func.overloadpacket.__name__:
            self.bytes += sum(bytes_of(tensor) for tensor in (*arguments, *results))
        return output


def bytes_of(values: Tensor) -> int:
    """Return the bytes that reading all values takes, where expanded axes are read once."""
    distinct = [length for length, stride in zip(values.shape, values.stride()) if stride != 0]
    return int(torch.Size(distinct).numel()) * values.element_size()


def count_work(step: Callable[[], object], members: Members) -> Work:
    """Count the work of `step`, which takes a step of these members by autograd."""
    count = len(members)
    with FlopCounterMode(display=False) as operations:
        step()
    with Traffic() as traffic:
        step()
    slots = members.optimizer.slots
    numbers = (3 + 3 + 2 * slots) * members.weights.numel() / count  # of the passes, the optimiser and its state
    state = numbers * members.weights.element_size()
    return Work(operations.get_total_flops() / count, state, traffic.bytes / count)


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
    """Measure the rates of copies and of products of matrices."""
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
