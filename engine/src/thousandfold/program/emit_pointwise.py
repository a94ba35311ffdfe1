"""Encoding of a group of pointwise nodes as one instruction. It runs over blocks of at most BLOCK numbers, which fit the L1 cache.
`kernels/blocks.py` describes the words.
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
    """Return the words of a group after code and length."""
    group = GroupCode(nodes)
    sizes, strides = collapse(group.sizes, [row for _, row in group.streams])
    if not sizes:
        sizes, strides = [1], [[0] for _ in group.streams]
    outer, at_once, inner = blocks(sizes)
    registers = Registers()
    modes = []
    written = {out for _, out, _ in group.operations if out[0] == "stream"}
    summed = {stream: (source, target) for source, stream, target in group.sums}
    for i, row in enumerate(strides):
        if i in summed:
            modes.append(ADDED_UP)
            continue
        registers.give(("stream", i))
        lies, (steps,) = collapse([at_once, *sizes[outer + 1 :]], [row[outer:]])
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
    for i, ((place, _), row, mode) in enumerate(zip(group.streams, strides, modes)):
        source = summed[i][0] if i in summed else ("stream", i)
        words += [*place, mode, registers.number[source], *row]
    for (kind, number), register in registers.number.items():
        if kind == "constant":
            words += [register, bits(number)]
    words += code
    for _, _, target in group.sums:
        words += target
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
    fused: list[Operation] = []
    for code, out, operands in operations:
        for place, x in enumerate(operands):
            i = next((i for i, entry in enumerate(fused) if entry[1] == x), None)
            if i is None or x[0] != "passing" or uses[x] > 1 or x in summed:
                continue
            first, _, read = fused[i]
            fused_code = PAIRED.get((first, code, place))
            if fused_code is not None and not any(entry[1] in read for entry in fused[i + 1 :]):
                del fused[i]
                code, operands = fused_code, [*read, operands[1 - place]]
                break
        fused.append((code, out, operands))
    return fused


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
            self.operations.append((CODES[node.fields["op"]], out, operands))
        self.operations = pair(self.operations, {source for source, _, _ in self.sums})

    def operands(self, node: ProgramNode, inside: dict[int, Operand]) -> Iterator[Operand]:
        strides = iter(node.strides)
        for x in node.ins:
            if not isinstance(x, View):
                yield "constant", float(x)
                continue
            steps = next(strides)
            if id(x.value) in inside and x.offset == 0:
                yield inside[id(x.value)]
            else:
                yield self.stream(place_of(x), self.spread(node, steps))

    def operand_of(self, node: ProgramNode) -> Operand:
        if not node.out.value.stored:
            return "passing", id(node)
        steps = node.fields.get("written") or run_strides(node.order)
        return self.stream(place_of(node.out), self.spread(node, steps))

    def add_sum(self, node: ProgramNode, inside: dict[int, Operand]) -> None:
        place = place_of(node.out)
        self.sums.append((inside[id(node.ins[0].value)], len(self.streams), [*place, node.out.value.size]))
        self.streams.append((place, self.spread(node, node.fields["written"])))

    def stream(self, place: tuple[int, int], strides: list[int]) -> Operand:
        ident = (*place, *strides)
        if ident not in self.numbers:
            self.numbers[ident] = len(self.streams)
            self.streams.append((place, strides))
        return "stream", self.numbers[ident]

    def spread(self, node: ProgramNode, strides: Sequence[int]) -> list[int]:
        """Return a node's strides for the common dimensions of the group."""
        atoms = [Atom(size, stride) for size, stride in zip(order_of(node), strides) if size > 1]
        return [atom.stride for atom in split(atoms, self.cuts)] or [0]

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
    return node.order if node.kind == PW else node.fields["order"]


def place_of(view: View) -> tuple[int, int]:
    """Return the buffer and offset of a view."""
    if view.value.place is not None:
        return view.value.place[0], view.value.place[1] + view.offset
    return ARENA, view.value.offset + view.offset
