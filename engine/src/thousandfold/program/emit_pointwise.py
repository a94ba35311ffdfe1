"""Encoding of a group of pointwise nodes as one instruction. It runs over blocks of at most BLOCK numbers, which fit the L1 cache.

dimensions | outer ones | of the next so many at once | inner size | streams, operations, constants, sums | sizes
streams: buffer, offset, mode (0 in place, 1 copied in, 2 copied out, 3 added up), register, strides
constants: register, bits | operations: code, out, three operands | sums: buffer, offset, size
"""

import struct
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Any

from thousandfold.codes import ADDED_UP, ARENA, BLOCK, COPIED_IN, COPIED_OUT, IN_PLACE, PW, REGISTERS
from thousandfold.operations import CODES
from thousandfold.program.atoms import Atom, Unsupported, View, collapse, cuts_of, run_strides, split
from thousandfold.program.draft import ProgramNode

STREAMS = 64
Operand = tuple[str, Any]  # ("stream", number), ("constant", value) or ("passing", node): not read by other groups


def group_words(nodes: Sequence[ProgramNode]) -> list[int]:
    group = GroupCode(nodes)
    sizes, strides = collapse(group.sizes, [own for _, own in group.streams])
    if not sizes:
        sizes, strides = [1], [[0] for _ in group.streams]
    outer, at_once, inner = blocks(sizes)
    registers = Registers()
    modes = []
    written = {out for _, out, _ in group.operations if out[0] == "stream"}
    summed = {stream: (source, rest) for source, stream, rest in group.sums}
    for i, own in enumerate(strides):
        if i in summed:
            modes.append(ADDED_UP)
            continue
        registers.give(("stream", i))
        lies, (steps,) = collapse([at_once, *sizes[outer + 1 :]], [own[outer:]])
        if not lies or (len(lies) == 1 and steps == [1]):
            modes.append(IN_PLACE)
        else:
            modes.append(COPIED_OUT if ("stream", i) in written else COPIED_IN)
    for constant in group.constants():
        registers.give(constant)
    constants = len(registers.number) - sum(mode != ADDED_UP for mode in modes)
    code = list(registers.assign(group))
    if registers.count > REGISTERS or len(group.streams) > STREAMS:
        raise Unsupported(f"{registers.count} numbers at once in a pointwise group")
    words = [len(sizes), outer, at_once, inner, len(group.streams), len(group.operations), constants, len(group.sums)]
    words += sizes
    for i, ((place, _), own, mode) in enumerate(zip(group.streams, strides, modes)):
        source = summed[i][0] if i in summed else ("stream", i)
        words += [*place, mode, registers.number[source], *own]
    for (kind, number), register in registers.number.items():
        if kind == "constant":
            words += [register, bits(number)]
    words += code
    for _, _, rest in group.sums:
        words += rest
    return words


def bits(number: float) -> int:
    """Return the bits of a float64 as an integer."""
    return int(struct.unpack("q", struct.pack("d", float(number)))[0])


def blocks(sizes: Sequence[int]) -> tuple[int, int, int]:
    """Return the number of dimensions outside a block, the elements of the next dimension in a block, and the size of the inner ones."""
    inner, k = 1, len(sizes)
    while k > 0 and inner * sizes[k - 1] <= BLOCK:
        k -= 1
        inner *= sizes[k]
    if k == 0:
        return 0, sizes[0], inner // sizes[0]
    return k - 1, max(1, BLOCK // inner), inner


# Pairs of operations of which only the second reads the result of the first are fused, so that this result is not stored:
# (first, second, index of the result among the operands of the second) -> fused operation.
PAIRS = {
    ("MUL", "ADD", 0): "MULADD",
    ("MUL", "ADD", 1): "MULADD",
    ("MUL", "SUB", 1): "MULSUB",
    ("MUL", "MUL", 0): "MULMUL",
    ("MUL", "MUL", 1): "MULMUL",
    ("SUB", "MUL", 0): "SUBMUL",
    ("SUB", "MUL", 1): "SUBMUL",
}
PAIRED = {(CODES[first], CODES[second], place): CODES[name] for (first, second, place), name in PAIRS.items()}
Operation = tuple[int, Operand, list[Operand]]


def pair(operations: Sequence[Operation], summed: Collection[Operand]) -> list[Operation]:
    """Fuse pairs of operations. `summed`: operands that sums read."""
    uses = Counter(x for _, _, operands in operations for x in operands)
    found: list[Operation] = []
    for code, out, operands in operations:
        for place, x in enumerate(operands):
            i = next((i for i, one in enumerate(found) if one[1] == x), None)
            if i is None or x[0] != "passing" or uses[x] > 1 or x in summed:
                continue
            first, _, read = found[i]
            both = PAIRED.get((first, code, place))
            if both is not None and not any(one[1] in read for one in found[i + 1 :]):
                del found[i]
                code, operands = both, [*read, operands[1 - place]]
                break
        found.append((code, out, operands))
    return found


class GroupCode:
    """The code of a group: `streams` (place, strides), `operations` (code, out, operands) and `sums`."""

    def __init__(self, nodes: Sequence[ProgramNode]) -> None:
        self.cuts = set().union(*(cuts_of(order_of(node)) for node in nodes)) | {1}
        edges = sorted(self.cuts)
        self.sizes = [b // a for a, b in pairwise(edges)][::-1] or [1]
        self.streams: list[tuple[tuple[int, int], list[int]]] = []
        self.numbers: dict[tuple[int, ...], int] = {}
        self.operations: list[Operation] = []
        self.sums: list[tuple[Operand, int, list[int]]] = []
        inside: dict[int, Operand] = {}
        for node in nodes:
            if node.kind != PW:
                self.add_sum(node, inside)
                continue
            operands = list(self.operands(node, inside))
            out = self.operand_of(node)
            inside[id(node.out.value)] = out
            self.operations.append((CODES[node.what["op"]], out, operands))
        self.operations = pair(self.operations, {source for source, _, _ in self.sums})

    def operands(self, node: ProgramNode, inside: dict[int, Operand]) -> Iterator[Operand]:
        strides = iter(node.strides)
        for x in node.ins:
            if not isinstance(x, View):
                yield "constant", float(x)
                continue
            own = next(strides)
            if id(x.value) in inside and x.offset == 0:
                yield inside[id(x.value)]
            else:
                yield self.stream(place_of(x), self.spread(node, own))

    def operand_of(self, node: ProgramNode) -> Operand:
        if not node.out.value.stored:
            return "passing", id(node)
        own = node.what.get("written") or run_strides(node.order)
        return self.stream(place_of(node.out), self.spread(node, own))

    def add_sum(self, node: ProgramNode, inside: dict[int, Operand]) -> None:
        place = place_of(node.out)
        self.sums.append((inside[id(node.ins[0].value)], len(self.streams), [*place, node.out.value.size]))
        self.streams.append((place, self.spread(node, node.what["written"])))

    def stream(self, place: tuple[int, int], strides: list[int]) -> Operand:
        ident = (*place, *strides)
        if ident not in self.numbers:
            self.numbers[ident] = len(self.streams)
            self.streams.append((place, strides))
        return "stream", self.numbers[ident]

    def spread(self, node: ProgramNode, strides: Sequence[int]) -> list[int]:
        """Return a node's strides for the common dimensions of the group."""
        own = [Atom(size, stride) for size, stride in zip(order_of(node), strides) if size > 1]
        return [atom.stride for atom in split(own, self.cuts)] or [0]

    def constants(self) -> list[Operand]:
        return list(dict.fromkeys(x for _, _, operands in self.operations for x in operands if x[0] == "constant"))


class Registers:
    """Allocation of registers, each a block of numbers. Registers of intermediate results are reused."""

    def __init__(self) -> None:
        self.number: dict[Operand, int] = {}
        self.free: list[int] = []
        self.count = 0

    def give(self, operand: Operand) -> None:
        if self.free:
            self.number[operand] = self.free.pop()
        else:
            self.number[operand], self.count = self.count, self.count + 1

    def assign(self, group: GroupCode) -> Iterator[int]:
        last: dict[Operand, int] = {}
        for i, (_, out, operands) in enumerate(group.operations):
            last |= dict.fromkeys((out, *operands), i)
        last |= dict.fromkeys((source for source, _, _ in group.sums), len(group.operations))
        for i, (code, out, operands) in enumerate(group.operations):
            read = [self.number[x] for x in operands]
            self.free += [self.number[x] for x in dict.fromkeys(operands) if x[0] == "passing" and last[x] == i]
            if out not in self.number:
                self.give(out)
            if out[0] == "passing" and last[out] == i:
                self.free.append(self.number[out])
            yield from (code, self.number[out], *read, *read[:1] * (3 - len(read)))


def order_of(node: ProgramNode) -> Sequence[int]:
    return node.order if node.kind == PW else node.what["order"]


def place_of(view: View) -> tuple[int, int]:
    """Return the buffer and offset of a view."""
    if view.value.given is not None:
        return view.value.given[0], view.value.given[1] + view.offset
    return ARENA, view.value.offset + view.offset
