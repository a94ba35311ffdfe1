"""Translation of a pointwise group to a function. The sums of the group determine how threads divide its numbers:

no sums: threads take numbers in turn;
sums over the last dimensions, as in the gradient of a bias over samples and tokens: 32 threads take a row;
sums over the first dimensions, as in a norm's mean over features: a thread takes a column or a part of one.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from thousandfold.codes import ADDED_UP
from thousandfold.gpu.writer import Writer, literal
from thousandfold.layouts import Place, WordReader
from thousandfold.operations import OPERAND, OPERATIONS
from thousandfold.program.atoms import run_strides

UNROLLED = 4  # numbers that a thread computes at once, so that it waits for memory once
HELD = 96  # approximate number of values that a thread then holds


@dataclass(frozen=True)
class Stream:
    place: Place
    adds_up: bool
    register: int
    strides: list[int]


@dataclass(frozen=True)
class Group:
    sizes: list[int]
    streams: list[Stream]
    constants: dict[int, float]  # register -> number
    code: list[list[int]]  # operation, register of the result, registers of the operands

    @staticmethod
    def read(p: WordReader) -> "Group":
        dims, _, _, _, streams, operations, constants, _ = p.take(8)
        sizes = p.take(dims)
        listed = [Stream(p.place(), p.word() == ADDED_UP, p.word(), p.take(dims)) for _ in range(streams)]
        values = {p.word(): p.number() for _ in range(constants)}
        code = [p.take(5) for _ in range(operations)]
        return Group(sizes, listed, values, code)

    @property
    def numbers(self) -> list[int]:
        """Return the streams of numbers, without those of sums."""
        return [i for i, stream in enumerate(self.streams) if not stream.adds_up]

    @property
    def sums(self) -> list[int]:
        return [i for i, stream in enumerate(self.streams) if stream.adds_up]

    def used(self) -> tuple[list[int], list[int]]:
        """Return the streams that are read before they are written, and those that are written."""
        stream_of = {self.streams[i].register: i for i in self.numbers}
        read, written = set[int](), set[int]()
        for operation in self.code:
            read |= {stream_of[register] for register in operands(operation) if register in stream_of} - written
            written |= {stream_of[register] for register in operation[1:2] if register in stream_of}
        return sorted(read), sorted(written)


def split_of(sizes: Sequence[int], strides: Sequence[int], least: bool = True) -> tuple[bool, int] | None:
    """Return whether a sum is over the last dimensions, and the number of their elements. Return None if it does not split the dimensions
    in two or, with `least`, if too few threads would have work. `strides`: strides of the result, 0 for summed dimensions."""
    kept = [bool(stride) for size, stride in zip(sizes, strides) if size > 1]
    sizes = [size for size in sizes if size > 1]
    changes = [k for k in range(1, len(kept)) if kept[k] != kept[k - 1]]
    if len(changes) != 1:
        return None
    outer, inner = math.prod(sizes[: changes[0]]), math.prod(sizes[changes[0] :])
    ends = kept[0]
    enough = outer >= ROWS and inner >= ROW if ends else inner >= COLUMNS
    return (ends, inner) if enough or not least else None


ROWS, ROW, COLUMNS = 8, 32, 64  # smallest number of rows, their smallest length, and smallest number of columns


def pointwise(writer: Writer, p: WordReader) -> None:
    group = Group.read(p)
    runs = len(group.sizes) == 1 and not group.sums  # its length is the number of weights, which depends on depth
    text = Function(group, writer, runs).text()
    name = writer.pointwise.setdefault(text, f"pointwise_{len(writer.pointwise)}")
    places = [stream.place for stream in group.streams]
    writer.call(name, (), places, *[f"record[{2 * len(places) + 1}]"] * runs)
    writer.records[-1] += [math.prod(group.sizes)] * runs


class Function:
    def __init__(self, group: Group, writer: Writer, runs: bool) -> None:
        self.group, self.threads, self.shared, self.runs = group, writer.threads, writer.shared, runs
        divided = {split_of(group.sizes, group.streams[k].strides, least=False) for k in group.sums}
        assert None not in divided and len(divided) < 2, "sums of one group divide its numbers in one way"
        self.divided = divided.pop() if divided else None
        self.total = math.prod(group.sizes)
        self.read, self.written = group.used()
        held = {register for operation in group.code for register in operation[1:2] + operands(operation)}
        self.registers = sorted(held - set(group.constants))
        self.most = max(1, min(UNROLLED, HELD // max(1, len(held))))  # numbers at once

    def text(self) -> str:
        outputs = [*self.written, *self.group.sums]
        parameters = [f"{'' if i in outputs else 'const '}real* s{i}" for i in range(len(self.group.streams))]
        parameters += ["int count"] * self.runs
        lines = [" ".join(f"GLOBAL(s{i});" for i in range(len(self.group.streams)))]
        if self.divided is None:
            lines += self.each()
        else:
            ends, inner = self.divided
            lines += self.sums_of_rows(inner) if ends else self.columns(inner)
        return f"({', '.join(parameters)}) {{\n" + "\n".join(lines) + "\n}\n"

    def each(self) -> list[str]:
        size = "count" if self.runs else str(self.total)
        unrolled = self.most if self.runs else min(self.most, -(-self.total // self.threads))
        whole = not self.runs and self.total % (unrolled * self.threads) == 0
        return [
            f"for (int first = threadIdx.x; first < {size}; first += {unrolled} * THREADS) {{",
            *self.numbers(unrolled, "first + u * THREADS", "" if whole else f"i < {size}"),
            "}",
        ]

    def sums_of_rows(self, run: int) -> list[str]:
        """Return the code of sums over the last dimensions, which have `run` elements."""
        unrolled = min(self.most, -(-run // 32))
        condition = "" if run % (unrolled * 32) == 0 else f"first + u * 32 < {run}"
        lines = [f"for (int row = threadIdx.x / 32; row < {self.total // run}; row += THREADS / 32) {{"]
        lines += [f"  real t{k} = 0;" for k in self.group.sums]
        lines += [f"  for (int first = threadIdx.x % 32; first < {run}; first += {unrolled} * 32) {{"]
        lines += [*self.numbers(unrolled, f"row * {run} + first + u * 32", condition), "  }"]
        lines += [f"  t{k} = sum_of_32(t{k});" for k in self.group.sums]
        return [*lines, f"  if (threadIdx.x % 32 == 0) {{ int i = row * {run};", *self.store_sums(), "  }", "}"]

    def columns(self, columns: int) -> list[str]:
        """Return the code of sums over the first dimensions, with so many results."""
        terms = self.total // columns
        parts = max(1, min(terms, self.threads // columns, self.shared // (columns * len(self.group.sums))))
        unrolled = min(self.most, -(-terms // parts))
        condition = "" if terms % (unrolled * parts) == 0 else f"first + u * {parts} < {terms}"
        lines = [f"for (int task = threadIdx.x; task < {columns * parts}; task += THREADS) {{"]
        lines += [f"  int column = task % {columns}, part = task / {columns};"]
        lines += [f"  real t{k} = 0;" for k in self.group.sums]
        lines += [f"  for (int first = part; first < {terms}; first += {unrolled} * {parts}) {{"]
        lines += [*self.numbers(unrolled, f"(first + u * {parts}) * {columns} + column", condition), "  }"]
        if parts == 1:
            return [*lines, "  int i = column;", *self.store_sums(), "}"]
        lines += [f"  shared[{k * columns * parts} + task] = t{number};" for k, number in enumerate(self.group.sums)]
        lines += ["}", "__syncthreads();", f"EACH(i, {columns}) {{"]
        for k, number in enumerate(self.group.sums):
            terms_of = " + ".join(f"shared[{(k * parts + part) * columns} + i]" for part in range(parts))
            lines += [f"  real t{number} = {terms_of};"]
        return [*lines, *self.store_sums(), "}"]

    def numbers(self, unrolled: int, at: str, condition: str) -> list[str]:
        """Return the code for `unrolled` numbers at once: it reads all, computes all, and then writes and adds all."""
        g = self.group
        guard = f"if ({condition})" if condition else ""
        loop = f"#pragma unroll\n  for (int u = 0; u < {unrolled}; ++u) {{ int i = {at}; {guard} {{"
        index = [] if self.runs else indices(g.sizes)
        address = {i: self.address(g.streams[i].strides) for i in g.numbers}
        lines = [f"  real {', '.join(f'r{register}[{unrolled}]' for register in self.registers)};"]
        lines += [loop, *index, *(f"    r{g.streams[i].register}[u] = s{i}[{address[i]}];" for i in self.read), "  } }"]
        lines += [f"#pragma unroll\n  for (int u = 0; u < {unrolled}; ++u) {{"]
        for kind, out, *ins in g.code:
            lines.append(f"    r{out}[u] = {text_of(kind, map(self.name, ins))};")
        lines += [
            "  }",
            loop,
            *index,
            *(f"    s{i}[{address[i]}] = {self.name(g.streams[i].register)};" for i in self.written),
        ]
        return [*lines, *(f"    t{k} += {self.name(g.streams[k].register)};" for k in g.sums), "  } }"]

    def name(self, register: int) -> str:
        constants = self.group.constants
        return literal(constants[register]) if register in constants else f"r{register}[u]"

    def address(self, strides: Sequence[int]) -> str:
        if self.runs:
            return "i" if strides[0] == 1 else f"i * {strides[0]}"
        return address_of(self.group.sizes, strides)

    def store_sums(self) -> list[str]:
        g = self.group
        return [*indices(g.sizes), *(f"  s{k}[{self.address(g.streams[k].strides)}] = t{k};" for k in g.sums)]


def operands(operation: Sequence[int]) -> list[int]:
    """Return the operands without the repeated ones of operations with one or two operands."""
    used = OPERAND.findall(text_of(operation[0], "xyz"))
    return [register for register, name in zip(operation[2:], "xyz") if name in used]


def text_of(code: int, operands: Iterable[str]) -> str:
    """Return the text of an operation of these operands."""
    names = dict(zip("xyz", operands))
    return OPERAND.sub(lambda name: names[name[0]], OPERATIONS[code].gpu or OPERATIONS[code].text)


def indices(sizes: Sequence[int]) -> list[str]:
    return [
        f"[[maybe_unused]] int i{k} = i / {stride} % {size};"
        for k, (size, stride) in enumerate(zip(sizes, run_strides(sizes)))
    ]


def address_of(sizes: Sequence[int], strides: Sequence[int]) -> str:
    if [s for n, s in zip(sizes, strides) if n > 1] == [s for n, s in zip(sizes, run_strides(sizes)) if n > 1]:
        return "i"
    terms = [f"i{k} * {stride}" for k, (size, stride) in enumerate(zip(sizes, strides)) if stride and size > 1]
    return " + ".join(terms) or "0"
