"""Measure member-steps a second against the size of the stack, for each network and engine, with and without dropout.

`compiled` measures steps whose passes PyTorch compiles, which fuses operations, before they are recorded, and checks their gradients.
"""

import time
from typing import Any

import torch

from benchmarks.gpu.limits import count_work, seconds_of, wait
from benchmarks.gpu.rows import Rows, Work
from benchmarks.networks import Setting, gpu_settings
from rankfall.train.captured import Captured
from rankfall.train.dropout import DeviceDropout

SIZES = (1, 4, 16, 64, 256, 1024, 4096)  # members of a stack
SLOWEST = 3.0  # seconds: after a slower step, larger stacks are not tried
DIFFERENCE = 1e-4  # of a compiled gradient, relative to its norm: sums have another order
COMPILING = 25.0  # seconds that a network takes, about


def measure_sweep(rows: Rows, device: torch.device, tiny: bool) -> None:
    """Measure the work of a step and the rate of each stack, from small to large."""
    length = 0.02 if tiny else 0.3
    for dropout in (0.1, 0.0):
        for net in list(gpu_settings().values())[: 3 if tiny else None]:
            members, batch, objective = net.equal_members(2, device, dropout), net.batch(2, device), net.objective()
            work = count_work(lambda: members.step(objective, batch), members)  # noqa: B023
            rows.add("operations of a member-step", work.operations, "operations", shape=net.name, dropout=dropout)
            rows.add("bytes of weights and optimiser", work.state, "bytes", shape=net.name, dropout=dropout)
            rows.add("bytes of unfused operations", work.unfused, "bytes", shape=net.name, dropout=dropout)
            for engine in reversed(net.engines(device)):
                for count in (1, 2) if tiny else SIZES:
                    labels = {"shape": net.name, "members": count, "dropout": dropout, "engine": engine}
                    if rows.seconds_left <= 0:
                        rows.add("rate", status="skipped", reason="the section's time is over", **labels)
                        return
                    if not measure_rate(rows, net, device, work, length, labels):
                        break


def measure_rate(
    rows: Rows, net: Setting, device: torch.device, work: Work, length: float, labels: dict[str, Any]
) -> bool:
    """Measure a rate for about `length` seconds, and return whether a larger stack is worth a try."""
    count, dropout = labels["members"], labels["dropout"]
    before = reset_peak(device)
    try:
        members, batch, objective = net.equal_members(count, device, dropout), net.batch(count, device), net.objective()
        members.engine = net.engine(labels["engine"], members)
        seconds = seconds_of(lambda: members.step(objective, batch), device, length)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        rows.add("rate", status="skipped", reason="out of memory", **labels)
        return False
    if isinstance(members.engine, Captured) and None in members.engine.recordings.values():
        rows.add("rate", status="failed", reason="steps could not be recorded", **labels)
        return False
    rows.add_rate(count / seconds, work, **labels)
    if device.type == "cuda":
        peak = torch.cuda.max_memory_allocated(device) - before
        rows.add("memory of a member", peak / count, "bytes", **labels)
    return seconds < SLOWEST


def reset_peak(device: torch.device) -> int:
    """Start a new peak of memory, and return the bytes that are in use."""
    if device.type != "cuda":
        return 0
    torch.cuda.reset_peak_memory_stats(device)
    return torch.cuda.memory_allocated(device)


def measure_compiled(rows: Rows, device: torch.device, tiny: bool) -> None:
    """Measure compiled steps, for networks that the section's time allows."""
    for name, members in (("sorting", 1024), ("hull", 256)):
        if tiny or rows.seconds_left > COMPILING:
            measure_network(rows, gpu_settings()[name], device, 2 if tiny else members, tiny)


def measure_network(rows: Rows, net: Setting, device: torch.device, count: int, tiny: bool) -> None:
    """Measure the compiled steps of one network, and check their gradients."""
    rate = net.training.dropout
    labels = {"shape": net.name, "members": count, "dropout": rate, "engine": "compiled"}
    members, batch, objective = net.equal_members(count, device, rate), net.batch(count, device), net.objective()
    dropout = DeviceDropout(members.seeds, rate, device)
    members.dropout = dropout  # also on a processor, since a compiler cannot follow NumPy's
    work = count_work(lambda: members.step(objective, batch), members)

    def gradient() -> torch.Tensor:
        """Return the gradients of the members (K, P) at a fixed place of the random stream."""
        members.differentiate(objective(members.module, batch, dropout.at(7)).loss)
        return members.grads.clone()

    expected = gradient()
    began = time.perf_counter()
    members.module.compile(dynamic=False, backend="aot_eager" if tiny else "inductor")
    compiled = gradient()
    wait(device)
    rows.add("seconds to compile", time.perf_counter() - began, "s", **labels)
    error = ((compiled - expected).norm(dim=1) / expected.norm(dim=1)).max()
    rows.check("gradient, compiled", float(error), DIFFERENCE, **labels)
    members.engine = net.engine("captured", members) if device.type == "cuda" else None
    seconds = seconds_of(lambda: members.step(objective, batch), device, 0.02 if tiny else 1.0)
    rows.add_rate(count / seconds, work, **labels)
