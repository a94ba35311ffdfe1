"""Member-steps a second against the size of the stack, for each network, with and without dropout, captured and not."""

import torch

from benchmarks.gpu.limits import Card, Work, work_of
from benchmarks.gpu.rows import Rows
from benchmarks.gpu.shapes import Setting, settings
from benchmarks.gpu.timing import seconds_of
from rankfall.train.captured import Captured

SIZES = (1, 4, 16, 64, 256, 1024, 4096)
SLOWEST = 3.0  # seconds: a step longer than that is not taken again


def sweep(rows: Rows, device: torch.device, card: Card, tiny: bool) -> None:
    about = 0.02 if tiny else 0.3
    for dropout in (0.1, 0.0):
        for net in list(settings().values())[: 3 if tiny else None]:
            net_work = counted(net, device, dropout)
            rows.add("operations of a member-step", net_work.operations, "operations", shape=net.name, dropout=dropout)
            rows.add("bytes of weights and optimiser", net_work.state, "bytes", shape=net.name, dropout=dropout)
            rows.add("bytes of unfused operations", net_work.unfused, "bytes", shape=net.name, dropout=dropout)
            for engine in reversed(net.engines(device)):
                for members in (1, 2) if tiny else SIZES:
                    about_it = {"shape": net.name, "members": members, "dropout": dropout, "engine": engine}
                    if rows.left <= 0:
                        rows.add("rate", status="skipped", reason="the section's time is over", **about_it)
                        return
                    if not point(rows, net, device, card, net_work, about, about_it):
                        break


def counted(net: Setting, device: torch.device, dropout: float) -> Work:
    members, batch, objective = net.alike(2, device, dropout), net.batch(2, device), net.objective()
    return work_of(lambda: members.step(objective, batch), members)


def point(
    rows: Rows, net: Setting, device: torch.device, card: Card, work: Work, about: float, about_it: dict[str, object]
) -> bool:
    """Whether larger stacks are worth a try."""
    members_count, dropout = about_it["members"], about_it["dropout"]
    assert isinstance(members_count, int) and isinstance(dropout, float)
    held = begin_peak(device)
    try:
        members, batch, objective = (
            net.alike(members_count, device, dropout),
            net.batch(members_count, device),
            net.objective(),
        )
        members.engine = net.engine(str(about_it["engine"]), members)
        seconds = seconds_of(lambda: members.step(objective, batch), device, about)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        rows.add("rate", status="skipped", reason="out of memory", **about_it)
        return False
    if isinstance(members.engine, Captured) and None in members.engine.recordings.values():
        rows.add("rate", status="failed", reason="steps could not be recorded", **about_it)
        return False
    rows.add("rate", members_count / seconds, "member-steps/s", **card.limits(work), **about_it)
    if device.type == "cuda":
        peak = torch.cuda.max_memory_allocated(device) - held
        rows.add("memory of a member", peak / members_count, "bytes", **about_it)
    return seconds < SLOWEST


def begin_peak(device: torch.device) -> int:
    """The bytes that are held before, from which the peak is counted."""
    if device.type != "cuda":
        return 0
    torch.cuda.reset_peak_memory_stats(device)
    return torch.cuda.memory_allocated(device)
