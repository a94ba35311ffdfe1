"""How many cells are trained at once: as many as the configuration allows, and on a GPU no more than its free memory holds.

Nothing here is part of a key. A stack that turns out to be too large is halved (`run/jobs/engine.py`).
"""

from typing import TYPE_CHECKING

import torch

from rankfall.run.plan.cost import member_megabytes

if TYPE_CHECKING:
    from rankfall.run.jobs.engine import Settings
    from rankfall.run.plan.cell import Cell

SHARE = 0.7  # of the free memory: the estimate of a member is rough


def members_at_once(cell: "Cell", settings: "Settings") -> int:
    """Return the stack size for the cell's group."""
    if settings.device.type != "cuda":
        return settings.stack
    own = member_megabytes(cell.task, cell.architecture, cell.training)
    return min(settings.stack, members_that_fit(free_megabytes(settings.device), own))


def members_that_fit(free: float, own: int) -> int:
    """Return a power of two, so that a restarted job with slightly less free memory has the same stacks and finds their checkpoints."""
    return int(2 ** (max(1, int(SHARE * free / own)).bit_length() - 1))


def free_megabytes(device: torch.device) -> float:
    """Return the free memory of the device, including what PyTorch reserves for its next allocations."""
    free, _ = torch.cuda.mem_get_info(device)
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return (free + kept) / 2**20
