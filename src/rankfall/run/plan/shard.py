"""Shards: which cells one job handles.

Cells that can be stacked should meet in a job, and a grid that grows should leave the jobs that it had as they were. So:

- a pack is (group, seed // 32): stackable cells, 32 seeds at a time. It is never divided. A network to which a stack is of no use is a
  pack of its own, by its spec instead of its group (`cells.py`);
- a pack's place is a number: its seeds first, then the hash of its group. A task begins as one shard of all places, and a shard that
  would take longer than `compute.shard_minutes` is cut into two halves of its range, and so on.

A new cell therefore moves no other, unless its own shard becomes too long: then that one is cut in two, and no cells meet that were
apart. New seeds are neighbours, so that they come together in a few shards and touch no shard of other seeds.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import NamedTuple

from rankfall.run.plan.cell import digest

SEEDS = 32
BITS = 32  # of the hash of a group
MOST = 256  # shards a task: beyond, starting jobs costs more than they do
WHOLE = "0"  # the name of a task's only shard


class Pack(NamedTuple):
    """Cells that stay together, whatever happens."""

    block: int  # of 32 seeds
    address: int  # hash of the group and the block

    @property
    def place(self) -> int:
        return self.block << BITS | self.address


def pack(group: str, seed: int) -> Pack:
    block = seed // SEEDS
    return Pack(block, int(digest("pack", group, block)[: BITS // 4], 16))


def shards(seconds: Mapping[Pack, float], shard_minutes: float) -> dict[Pack, str]:
    """The shard of each pack of a task; packs with what they cost. Where there would be too many, jobs may take twice as long, and
    so on."""
    packs = sorted(seconds, key=lambda one: one.place)
    places = [one.place for one in packs]
    until = [0.0, *accumulate(seconds[one] for one in packs)]
    longest = 60 * shard_minutes
    while longest * MOST < until[-1]:
        longest *= 2
    while len(cut := list(_cut(places, until, longest, 0, len(places)))) > MOST:
        longest *= 2
    return {one: name for first, last, name in cut for one in packs[first:last]}


def _cut(
    places: list[int], until: list[float], longest: float, first: int, last: int, name: str = WHOLE
) -> Iterator[tuple[int, int, str]]:
    """The shards (first, last, name) of the packs from `first` to before `last`."""
    differing = places[first] ^ places[last - 1]
    if until[last] - until[first] <= longest or not differing:
        yield first, last, name
        return
    low = differing.bit_length() - 1  # the highest bit in which they differ parts them
    middle = bisect_left(places, places[last - 1] >> low << low, first, last)
    for start, end in ((first, middle), (middle, last)):
        yield from _cut(places, until, longest, start, end, _name(places[start] >> low, low))


def _name(number: int, low: int) -> str:
    """Of the places that are `number` but for their `low` lowest bits: the seeds, and the first bits of the hash if there are any."""
    start = number << low >> BITS
    end = (number + 1 << low) - 1 >> BITS
    seeds = f"{start * SEEDS}-{(end + 1) * SEEDS - 1}"
    count = BITS - low
    return f"{seeds}.{number & (1 << count) - 1:0{count}b}" if count > 0 else seeds
