"""Shards: which cells one job handles.

Cells that can be stacked should meet in a job, and a cell's place must not depend on which other cells there are. So:

- a pack is (group, seed // 32): stackable cells, 32 seeds at a time;
- a pack's address is the hash of that; a task with 2^n shards puts it in the one that its first n bits name;
- n follows from the task's estimated cost over `compute.shard_minutes`.

A new cell therefore moves no other, except when a task outgrows its shards: then each shard splits in two, and no cells meet that
were apart. That costs a lookup: whatever is in the store is found, wherever its job.
"""

import math

from rankfall.plan.cell import digest

SEEDS = 32
MOST = 256  # shards a task: beyond, starting jobs costs more than they do


def pack(group: str, seed: int) -> str:
    """Address of the cells that stay together, whatever happens."""
    return digest("pack", group, seed // SEEDS)


def bits(seconds: float, shard_minutes: float) -> int:
    """n, for a task that takes so long on one core."""
    wanted = seconds / (60 * shard_minutes)
    return 0 if wanted <= 1 else math.ceil(math.log2(min(wanted, MOST)))


def shard(address: str, n: int) -> str:
    """The first n bits of the address, in hex, as wide as the last shard's."""
    number = int(address[:8], 16) >> (32 - n)
    return f"{number:0{max(1, -(-n // 4))}x}"
