"""Divide cells into shards, the cells of a job.

Cells that can be stacked should be in the same job, and a growing grid should leave existing jobs unchanged. So:

- a pack is (group, seed // 32): stackable cells, 32 seeds at a time. It is never divided. A network that gains nothing from a stack is a
  pack by itself, with its spec in place of its group (`cells.py`);
- a pack's place is a number: its seeds first, then the hash of its group. A task begins as one shard of all places. A shard that would take
  longer than `compute.shard_minutes` is cut into two halves of its range, and so on.

A new cell therefore moves no other, unless its own shard becomes too long. Then that shard is cut in two, and no separate cells are joined.
New seeds are neighbours, so they are together in a few shards and touch no shard of other seeds.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import accumulate

from rankfall.run.plan.cell import digest

SEEDS = 32  # seeds of a pack: the default size of a stack
BITS = 32  # bits of the hash of a group
MOST = 256  # shards of a task: with more, starting jobs costs more than their work
WHOLE = "0"  # name of a task's only shard


def place_of_pack(group: str, seed: int) -> int:
    """Return the place of the pack of a seed's cell of a group: its block of SEEDS seeds, then the hash of group and block."""
    block = seed // SEEDS
    return block << BITS | int(digest("pack", group, block)[: BITS // 4], 16)


def shards(seconds: Mapping[int, float], shard_minutes: float) -> dict[int, str]:
    """Return the shard of each pack of a task, by place. `seconds` are the costs of the packs.

    While there would be too many shards, their longest time is doubled."""
    places = sorted(seconds)
    ends = [0.0, *accumulate(seconds[place] for place in places)]  # seconds until the end of each pack
    longest = 60 * shard_minutes
    while longest * MOST < ends[-1]:
        longest *= 2
    while len(cut := list(_cut(places, ends, longest, 0, len(places)))) > MOST:
        longest *= 2
    return {place: name for first, last, name in cut for place in places[first:last]}


def _cut(
    places: list[int], ends: list[float], longest: float, first: int, last: int, name: str = WHOLE
) -> Iterator[tuple[int, int, str]]:
    """Yield the shards (first, last, name) of the packs from `first` to before `last`."""
    differing = places[first] ^ places[last - 1]
    if ends[last] - ends[first] <= longest or not differing:
        yield first, last, name
        return
    low = differing.bit_length() - 1  # the highest differing bit separates them
    middle = bisect_left(places, places[last - 1] >> low << low, first, last)
    for start, end in ((first, middle), (middle, last)):
        yield from _cut(places, ends, longest, start, end, _name(places[start] >> low, low))


def _name(number: int, low: int) -> str:
    """Name a shard by the common high bits of its places: its seeds, and the first bits of the hash if any are fixed."""
    start = number << low >> BITS
    end = (number + 1 << low) - 1 >> BITS
    seeds = f"{start * SEEDS}-{(end + 1) * SEEDS - 1}"
    count = BITS - low
    return f"{seeds}.{number & (1 << count) - 1:0{count}b}" if count > 0 else seeds
