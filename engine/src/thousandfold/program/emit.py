"""Places of values in the arena, and encoding of nodes as instructions: int64 words in the layouts that the kernels read."""

from collections.abc import Sequence

import numpy as np

from thousandfold.codes import PW
from thousandfold.layouts import FIELDS
from thousandfold.program.atoms import Value, View
from thousandfold.program.draft import ProgramNode
from thousandfold.program.emit_pointwise import bits, group_words, place_of

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
            value.stored = value.stored or value.place is not None or node.kind != PW
            values[id(value)] = value
    placed: list[tuple[int, int, Value]] = []  # (begin, end, value), in order
    size = 0
    for value in sorted((v for v in values.values() if v.place is None and v.stored), key=lambda v: v.first):
        placed = [entry for entry in placed if entry[2].last >= value.first]
        needed, at, place = (-(-value.size // LINE) + 1) * LINE, 0, len(placed)
        for i, (begin, end, _) in enumerate(placed):
            if begin - at >= needed:
                place = i
                break
            at = end
        value.offset = at
        placed.insert(place, (at, at + needed, value))
        size = max(size, at + needed)
    return size


def emit(nodes: Sequence[ProgramNode], groups: Sequence[Sequence[int]]) -> np.ndarray:
    words: list[int] = []
    for group in groups:
        members = [nodes[i] for i in group]
        body = group_words(members) if members[0].kind == PW else node_words(members[0])
        words += [members[0].kind, len(body) + 2, *(int(word) for word in body)]
    return np.array(words, np.int64)


def node_words(node: ProgramNode) -> list[int]:
    fields, words = FIELDS[node.kind], list[int]()
    operands = [field.name for field in fields if field.kind == "." and field.name != "out"]
    places = {"out": place_of(node.out)} | dict(zip(operands, map(place_of, node.ins)))
    sizes = {field.size: len(node.fields[field.name]) for field in fields if field.kind == "["}
    for field in fields:
        if field.kind == ".":
            words += places.get(field.name, (0, 0))
        elif field.kind == "[":
            words += node.fields[field.name].tolist()
        else:
            value = sizes.get(field.name, node.fields.get(field.name, 0))
            words.append(bits(value) if field.kind == "#" else value)
    return words
