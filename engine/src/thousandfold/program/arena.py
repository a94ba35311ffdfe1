"""Allocation of values in the arena: each at the first place that is free while the value is used."""

from collections.abc import Sequence

from thousandfold.codes import PW
from thousandfold.program.atoms import Value, View
from thousandfold.program.draft import ProgramNode

LINE = 16  # numbers of a cache line; each value begins a line and is followed by a readable one


def allocate(nodes: Sequence[ProgramNode], groups: Sequence[Sequence[int]]) -> int:
    """Assign a place to each value, and return the size of the arena in numbers."""
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
                    if writes_here.get(id(x.value), {g}) != {g}:  # another instruction writes it to memory
                        x.value.stored = True
            value.first = g if value.first < 0 else value.first
            value.last = max(value.last, g)
            value.stored = value.stored or value.given is not None or node.kind != PW
            values[id(value)] = value
    placed: list[tuple[int, int, Value]] = []  # (begin, end, value), in order
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
