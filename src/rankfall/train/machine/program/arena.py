"""Where values lie in the arena: each at the first place that is free as long as it is used."""

from collections.abc import Sequence

from rankfall.train.machine.codes import PW
from rankfall.train.machine.program.atoms import Value, View
from rankfall.train.machine.program.draft import ProgramNode

LINE = 16  # numbers; every value begins a line of the cache, and is followed by one that may be read


def allocate(nodes: Sequence[ProgramNode], groups: Sequence[Sequence[int]]) -> int:
    """Gives every value its place, and says how many numbers the arena has."""
    group_of = {i: g for g, group in enumerate(groups) for i in group}
    writes_here: dict[int, set[int]] = {}
    for i, g in group_of.items():
        writes_here.setdefault(id(nodes[i].out.value), set()).add(g)
    values: dict[int, Value] = {}
    for g, group in enumerate(groups):
        for i in group:
            node, value = nodes[i], nodes[i].out.value
            for x in node.ins:
                if isinstance(x, View):
                    x.value.last = max(x.value.last, g)
                    if writes_here.get(id(x.value), {g}) != {g}:  # made by another instruction: it has to be in memory
                        x.value.stored = True
            value.first = g if value.first < 0 else value.first
            value.last = max(value.last, g)
            value.stored = value.stored or value.given is not None or node.kind != PW
            values[id(value)] = value
    placed: list[tuple[int, int, Value]] = []  # where it begins and ends, in order
    size = 0
    for value in sorted((v for v in values.values() if v.given is None and v.stored), key=lambda v: v.first):
        placed = [one for one in placed if one[2].last >= value.first]
        needed, at, place = room(value), 0, len(placed)
        for i, (begin, end, _) in enumerate(placed):
            if begin - at >= needed:
                place = i
                break
            at = end
        value.offset = at
        placed.insert(place, (at, at + needed, value))
        size = max(size, at + needed)
    return size


def room(value: Value) -> int:
    return (-(-value.size // LINE) + 1) * LINE
