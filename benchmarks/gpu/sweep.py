"""Measure member-steps a second against the size of the stack, for each network and engine, with and without dropout."""

from typing import Any

import torch

from benchmarks.gpu.card import seconds_of
from benchmarks.gpu.limits import Card, Work, count_work
from benchmarks.gpu.rows import Rows
from benchmarks.networks import Setting, gpu_settings
from rankfall.train.captured import Captured

SIZES = (1, 4, 16, 64, 256, 1024, 4096)
SLOWEST = 3.0  # seconds: after a slower step, larger stacks are not tried


def measure_sweep(rows: Rows, device: torch.device, card: Card, tiny: bool) -> None:
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
                    about = {"shape": net.name, "members": count, "dropout": dropout, "engine": engine}
                    if rows.seconds_left <= 0:
                        rows.add("rate", status="skipped", reason="the section's time is over", **about)
                        return
                    if not measure_rate(rows, net, device, card, work, length, about):
                        break


def measure_rate(
    rows: Rows, net: Setting, device: torch.device, card: Card, work: Work, length: float, about: dict[str, Any]
) -> bool:
    """Measure a rate for about `length` seconds, and return whether a larger stack is worth a try."""
    count, dropout = about["members"], about["dropout"]
    before = reset_peak(device)
    try:
        members, batch, objective = net.equal_members(count, device, dropout), net.batch(count, device), net.objective()
        members.engine = net.engine(about["engine"], members)
        seconds = seconds_of(lambda: members.step(objective, batch), device, length)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        rows.add("rate", status="skipped", reason="out of memory", **about)
        return False
    if isinstance(members.engine, Captured) and None in members.engine.recordings.values():
        rows.add("rate", status="failed", reason="steps could not be recorded", **about)
        return False
    rows.add("rate", count / seconds, "member-steps/s", **card.limits(work), **about)
    if device.type == "cuda":
        peak = torch.cuda.max_memory_allocated(device) - before
        rows.add("memory of a member", peak / count, "bytes", **about)
    return seconds < SLOWEST


def reset_peak(device: torch.device) -> int:
    """Start a new peak of memory, and return the bytes that are in use."""
    if device.type != "cuda":
        return 0
    torch.cuda.reset_peak_memory_stats(device)
    return torch.cuda.memory_allocated(device)
