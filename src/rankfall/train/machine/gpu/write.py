"""A program as the text of one CUDA kernel: a block of threads runs it for one member after another.

Instructions that differ in nothing but where their numbers lie are one function, so that a further layer is a few more calls.
"""

import math
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from rankfall.train.machine.codes import (
    ARENA,
    ARGMAX,
    BMM,
    BUFFERS,
    CUMSUM,
    GATHER,
    GEN,
    GRAD,
    KEY,
    LIN,
    MASK,
    NORM,
    OPERATIONS,
    OUT,
    PW,
    RED,
    SCATTER,
    STEP,
    WGRAD,
)
from rankfall.train.machine.gpu.instructions import TEXT
from rankfall.train.machine.program.atoms import run_strides
from rankfall.train.machine.program.build import Program

UNROLLED = 4  # numbers of a pointwise group that a thread has at once, so that it waits for memory once
HELD = 96  # numbers that it then holds, about
LINE = 64  # numbers; every block's arena begins a line of the cache
HELD_OUTPUTS = 24  # of a product: a thread has 64 registers
Place = tuple[int, int]  # buffer and offset

EXPRESSIONS = {
    "ADD": "{a} + {b}",
    "SUB": "{a} - {b}",
    "MUL": "{a} * {b}",
    "DIV": "{a} / {b}",
    "MAXI": "larger({a}, {b})",
    "MINI": "smaller({a}, {b})",
    "NEG": "-{a}",
    "RSQRT": "real(1) / R(sqrt)({a})",
    "RECIP": "real(1) / {a}",
    "SIGMOID": "logistic({a})",
    "ABS": "R(fabs)({a})",
    "WHERE": "{a} != real(0) ? {b} : {c}",
    "AND": "real({a} != real(0) && {b} != real(0))",
    "OR": "real({a} != real(0) || {b} != real(0))",
    "NOT": "real({a} == real(0))",
    "FMA": "R(fma)({a}, {b}, {c})",
    "FMS": "R(fma)(-{a}, {b}, {c})",
    "COPY": "{a}",
    "SIGN": "sign({a})",
    "CDF": "normal_below({a})",
    **{
        name: f"R({name.lower()})({{a}})"
        for name in ["EXP", "LOG", "ERF", "TANH", "SQRT", "SIN", "COS", "EXPM1", "LOG1P", "FLOOR"]
    },
    "POW": "R(pow)({a}, {b})",
    **{
        name: f"real({{a}} {sign} {{b}})"
        for name, sign in zip(["EQ", "NE", "LT", "LE", "GT", "GE"], ("==", "!=", "<", "<=", ">", ">="))
    },
}


@dataclass
class Writer:
    """`threads`: of a block; `shared`: numbers of shared memory that it has."""

    threads: int
    shared: int
    bytes: int  # of a number
    arena: int  # numbers of the arena, behind which there may be room for more
    scratch: int = 0  # of which so many are used
    tables: list[int] = field(default_factory=list)
    table_at: dict[tuple[int, ...], int] = field(default_factory=dict)
    pointwise: dict[str, str] = field(default_factory=dict)  # the text of a function -> its name
    calls: dict[str, int] = field(
        default_factory=dict
    )  # the text of a call, but for where its numbers lie -> its number
    records: list[list[int]] = field(
        default_factory=list
    )  # of each instruction the number of its call, and where its numbers lie

    def table(self, offsets: Iterable[int]) -> str:
        """The type that says where elements lie."""
        own = tuple(int(one) for one in offsets)
        stride, size = own[1] - own[0] if len(own) > 1 else 0, 1
        while size < len(own) and own[size] == own[0] + size * stride:
            size += 1
        if size == len(own) and own[0] == 0:
            return f"Run<{stride}>"
        outer = own[::size]
        if 1 < size < len(own) and all(one == outer[i // size] + i % size * stride for i, one in enumerate(own)):
            return f"Split<{size}, {stride}, {self.table(outer)}>"
        if own not in self.table_at:
            self.table_at[own] = len(self.tables)
            self.tables += own
        return f"Table<{self.table_at[own]}>"

    def call(self, name: str, template: Sequence[object], places: Sequence[Place], *others: str) -> None:
        """An instruction. `others`: arguments behind the places."""
        own = f"<{', '.join(str(one) for one in template)}>" if template else ""
        given = ", ".join([*(f"place({k})" for k in range(len(places))), *others])
        number = self.calls.setdefault(f"{name}{own}({given});", len(self.calls))
        self.records.append([number, *(word for place in places for word in place)])


class Reader:
    """Words in order."""

    def __init__(self, words: np.ndarray) -> None:
        self.words, self.next = words.tolist(), 0

    def one(self) -> int:
        self.next += 1
        return int(self.words[self.next - 1])

    def some(self, count: int) -> list[int]:
        self.next += count
        return self.words[self.next - count : self.next]

    def place(self) -> Place:
        return self.one(), self.one()

    def number(self) -> float:
        return float(struct.unpack("d", struct.pack("q", self.one()))[0])


def instructions(program: Program) -> Iterator[tuple[int, Reader]]:
    begin = 0
    for _ in range(program.count):
        kind, length = (int(one) for one in program.words[begin : begin + 2])
        yield kind, Reader(program.words[begin + 2 : begin + length])
        begin += length


def literal(number: float) -> str:
    if math.isnan(number):
        return "not_a_number()"
    if math.isinf(number):
        return "infinite()" if number > 0 else "-infinite()"
    return f"real({number!r})"


def pointwise(writer: Writer, p: Reader) -> None:
    dims, _, _, _, count, operations, constants, sums = p.some(8)
    assert not sums, "a program for a GPU has its sums apart"
    sizes = p.some(dims)
    streams = [(p.place(), p.one(), p.one(), p.some(dims)) for _ in range(count)]
    values = {p.one(): p.number() for _ in range(constants)}
    code = [p.some(5) for _ in range(operations)]
    total = math.prod(sizes)
    of_stream = {register: i for i, (_, _, register, _) in enumerate(streams)}
    read, written = streams_used(code, of_stream)
    used = len({one for operation in code for one in operation[1:]})
    row = dims == 1  # as long as there are weights, in the optimiser's program: not the same at every depth
    unrolled = max(1, min(UNROLLED, UNROLLED if row else -(-total // writer.threads), HELD // max(1, used)))
    size = "count" if row else str(total)
    index = [] if row else indices(sizes)
    address = {
        i: ("i" if strides[0] == 1 else f"i * {strides[0]}") if row else address_of(sizes, strides)
        for i, (_, _, _, strides) in enumerate(streams)
    }
    held = sorted({one for operation in code for one in operation[1:2] + operands(operation)} - set(values))
    lines = [" ".join(f"GLOBAL(s{i});" for i in range(count))]
    lines += [f"for (int first = threadIdx.x; first < {size}; first += {unrolled} * THREADS) {{"]
    lines += [f"  real {', '.join(f'r{one}[{unrolled}]' for one in held)};"]
    guard = "" if not row and total % (unrolled * writer.threads) == 0 else f" if (i < {size})"
    loop = f"#pragma unroll\n  for (int u = 0; u < {unrolled}; ++u) {{ int i = first + u * THREADS;{guard} {{"
    lines += [loop, *(f"    {one}" for one in index)]
    lines += [f"    r{streams[i][2]}[u] = s{i}[{address[i]}];" for i in read]
    lines += ["  } }", f"#pragma unroll\n  for (int u = 0; u < {unrolled}; ++u) {{"]
    name = lambda register: literal(values[register]) if register in values else f"r{register}[u]"  # noqa: E731
    for kind, out, *ins in code:
        a, b, c = (name(one) for one in ins)
        lines.append(f"    r{out}[u] = {EXPRESSIONS[OPERATIONS[kind]].format(a=a, b=b, c=c)};")
    lines += ["  }", loop, *(f"    {one}" for one in index)]
    lines += [f"    s{i}[{address[i]}] = r{streams[i][2]}[u];" for i in written]
    lines += ["  } }", "}"]
    parameters = [f"{'' if i in written else 'const '}real* s{i}" for i in range(count)] + ["int count"] * row
    body = f"({', '.join(parameters)}) {{\n" + "\n".join(lines) + "\n}\n"
    function = writer.pointwise.setdefault(body, f"pointwise_{len(writer.pointwise)}")
    writer.call(function, (), [place for place, *_ in streams], *[f"record[{2 * count + 1}]"] * row)
    writer.records[-1] += [total] * row


def operands(operation: Sequence[int]) -> list[int]:
    """Without those that an operation of one or two operands repeats."""
    text = EXPRESSIONS[OPERATIONS[operation[0]]]
    return [one for one, name in zip(operation[2:], "abc") if f"{{{name}}}" in text]


def streams_used(code: Sequence[Sequence[int]], of_stream: dict[int, int]) -> tuple[list[int], list[int]]:
    """Streams whose numbers are read before any is written, and those that are written."""
    read, written = set[int](), set[int]()
    for operation in code:
        read |= {of_stream[one] for one in operands(operation) if one in of_stream} - written
        written |= {of_stream[one] for one in operation[1:2] if one in of_stream}
    return sorted(read), sorted(written)


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


def reduction(writer: Writer, p: Reader) -> None:
    kind, out, x = p.one(), p.place(), p.place()
    rows, run, terms, neighbours = p.some(4)
    scale = literal(p.number())
    io, oo, ro = (writer.table(p.some(count)) for count in (rows, rows, terms))
    if kind == ARGMAX:
        writer.call("place_of_largest", (rows, run, terms, io, oo, ro), (out, x))
    elif neighbours:
        writer.call("reduce_neighbours", (kind, rows, neighbours, terms, io, oo, ro), (out, x), scale)
    else:
        writer.call("reduce", (kind, rows, run, terms, io, oo, ro), (out, x), scale)


def linear(writer: Writer, p: Reader) -> None:
    x, w, out, bias = (p.place() for _ in range(4))
    biased, columns, terms, rows, run = p.some(5)
    kx, kw, nw, nc, columns_of_bias = (p.some(n) for n in (terms, terms, columns, columns, columns))
    rx, rw, rc = (p.some(rows) for _ in range(3))
    places = [writer.table(one) for one in (kx, kw, nw, nc, columns_of_bias, rx)]
    flag = "true" if biased else "false"
    if any(one != rw[0] for one in rw):
        own = (rows, run, columns, terms, flag, *places, writer.table(rw), writer.table(rc))
        writer.call("linear_by_row", own, (out, x, w, bias))
        return
    lanes, wide = cheapest(
        [(l, n) for l in (1, 2, 4) for n in (4, 8, 12, 16, 24) if l * n <= HELD_OUTPUTS],
        lambda l, n: tasks(-(-rows * run // l) * -(-columns // n), writer) * (l * n + 4 * l + n),
    )
    first = "true" if terms > 1 and abs(kw[1] - kw[0]) == 1 else "false"
    weights = w[0], w[1] + rw[0]
    own = (rows, run, columns, terms, lanes, wide, flag, first, *places, writer.table(rc))
    writer.call("linear", own, (out, x, weights, bias))


def tasks(count: int, writer: Writer) -> int:
    """How often a thread has one."""
    return -(-count // writer.threads)


def cheapest(pairs: Sequence[tuple[int, int]], cost: Callable[[int, int], float]) -> tuple[int, int]:
    return min(pairs, key=lambda pair: cost(*pair))


def weight_gradient(writer: Writer, p: Reader) -> None:
    a, b, out = (p.place() for _ in range(3))
    rows, columns, terms, run = p.some(4)
    ma, nb, mc, ka, kb = (writer.table(p.some(n)) for n in (rows, columns, rows, terms, terms))
    tall, wide = tile(rows, columns, writer)
    own = (rows, columns, terms, run, tall, wide, ma, nb, mc, ka, kb)
    writer.call("weights_gradient", own, (out, a, b))


def tile(rows: int, columns: int, writer: Writer) -> tuple[int, int]:
    """Of outputs, for which threads and shared memory suffice, as `weights_gradient` in instructions.py uses them."""
    tall, wide = rows, columns
    while -(-tall // 4) * -(-wide // 4) > writer.threads or (tall + wide + 40) * 8 > writer.shared:
        tall, wide = (-(-tall // 2), wide) if tall >= wide else (tall, -(-wide // 2))
    return tall, wide


def product(writer: Writer, p: Reader, with_lanes: bool) -> None:
    a, b, out = (p.place() for _ in range(3))
    la, lb = p.some(2) if with_lanes else (0, 0)
    count, rows, columns, terms = p.some(4)
    lanes = p.one() if with_lanes else 1
    sizes = (count, count, count, rows, terms, columns, terms, rows, columns)
    tables = [writer.table(p.some(size)) for size in sizes]
    tall, wide = cheapest(
        [(m, n) for m in (1, 2, 4, 6, 8) for n in (1, 2, 4, 6, 8) if m * n <= HELD_OUTPUTS],
        lambda m, n: tasks(count * -(-rows // m) * -(-columns // n) * lanes, writer) * (m * n + 4 * (m + n)),
    )
    own = (count, rows, columns, terms, lanes, la, lb, tall, wide, *tables)
    writer.call("product", own, (out, a, b))


def gathering(writer: Writer, p: Reader) -> None:
    x, index, out = (p.place() for _ in range(3))
    places, features, stride = p.some(3)
    tables = [writer.table(p.some(size)) for size in (places, places, places, features, features)]
    writer.call("gather", (places, features, stride, *tables), (out, x, index))


def scattering(writer: Writer, p: Reader) -> None:
    out, index, v = (p.place() for _ in range(3))
    zeros, adds, places, features, stride = p.some(5)
    io, xo, vo, xd, vd = (np.array(p.some(size)) for size in (places, places, places, features, features))
    # Where xo differs, so do the other dimensions of what is written: only places with one xo may meet.
    order = np.argsort(xo, kind="stable")
    groups = len(np.unique(xo))
    if len(set(np.unique(xo, return_counts=True)[1])) > 1:
        groups, order = 1, np.arange(places)
    tables = [writer.table(one) for one in (io[order], xo[order], vo[order], xd, vd)]
    own = (zeros, "true" if adds else "false", groups, places // groups, features, stride, *tables)
    writer.call("scatter", own, (out, index, v))


def running_sum(writer: Writer, p: Reader) -> None:
    x, out = p.place(), p.place()
    rows, terms = p.some(2)
    tables = [writer.table(p.some(size)) for size in (rows, rows, terms, terms)]
    writer.call("running_sums", (rows, terms, *tables), (out, x))


def dropout(writer: Writer, p: Reader) -> None:
    out, site, threshold, scale = p.place(), p.one(), p.one(), literal(p.number())
    size, rows, lanes, stride = p.some(4)
    tables = [writer.table(p.some(rows)) for _ in range(2)]
    numbers = -(-size // 16) * 32 // writer.bytes
    fits = numbers <= writer.shared
    writer.scratch = max(writer.scratch, 0 if fits else numbers)
    draws = "shared" if fits else f"now[{ARENA}] + {writer.arena}"
    own = (size, rows, lanes, stride, *tables)
    random = f"(const word*)now[{KEY}]", f"(const word*)now[{STEP}]", "number(1)", str(threshold), scale
    writer.call("mask", own, (out,), draws, *random)
    writer.records[-1] += [half(site, 0), half(site, 32)]


def half(number: int, shift: int) -> int:
    """32 bits of it, as a signed integer."""
    bits = number >> shift & 0xFFFFFFFF
    return bits - 2**32 if bits >= 2**31 else bits


WRITERS: dict[int, Callable[[Writer, Reader], None]] = {
    PW: pointwise,
    RED: reduction,
    LIN: linear,
    WGRAD: weight_gradient,
    BMM: lambda writer, p: product(writer, p, True),
    GEN: lambda writer, p: product(writer, p, False),
    GATHER: gathering,
    SCATTER: scattering,
    CUMSUM: running_sum,
    MASK: dropout,
}

HEADER = """
typedef {format} real;
typedef unsigned long long word;
#define R(function) function{suffix}
#define THREADS {threads}
#define SHARED {shared}
#define WORDS {words}
#define GLOBAL(pointer) __builtin_assume(__isGlobal(pointer))
__device__ __forceinline__ real infinite() {{ return R(exp)(real(1000)); }}
__device__ __forceinline__ real not_a_number() {{ return infinite() - infinite(); }}
__device__ __forceinline__ void four(real* to, const real* from) {{
  {four}
}}
__device__ const int TABLE[] = {{{table}}};
"""
KERNEL = """
__device__ void run_one(const int* record, real* const* now) {{
#define place(k) now[record[2 * (k) + 1]] + record[2 * (k) + 2]
#define number(k) (word(unsigned(record[2 * (k) + 2])) << 32 | unsigned(record[2 * (k) + 1]))
  switch (record[0]) {{
    {cases}
  }}
#undef place
#undef number
}}

// Instructions first .. last - 1. The next one's words are on their way while one is run.
__device__ void run(const int* program, int first, int last, int (*records)[WORDS], real* const* now) {{
  if (threadIdx.x < WORDS && first < last) records[first % 2][threadIdx.x] = program[first * WORDS + threadIdx.x];
  __syncthreads();
  for (int i = first; i < last; ++i) {{
    bool more = threadIdx.x < WORDS && i + 1 < last;
    int next = more ? program[(i + 1) * WORDS + threadIdx.x] : 0;
    run_one(records[i % 2], now);
    if (more) records[(i + 1) % 2][threadIdx.x] = next;
    __syncthreads();
  }}
}}

// Members blockIdx.x, blockIdx.x + gridDim.x, ...: the gradient, and where it and the loss are finite, the optimiser's program; else
// alive[m] becomes 0. `bases`: addresses of the buffers of member 0, and bytes from member to member.
extern "C" __global__ void __launch_bounds__(THREADS, {blocks})
steps(const int* program, int instructions, int descent, const long long* bases, real* arenas, int arena, int members, int weights,
      long long* alive) {{
  __shared__ real* now[{buffers}];
  __shared__ int records[2][WORDS];
  for (int m = blockIdx.x; m < members; m += gridDim.x) {{
    if (threadIdx.x < {buffers}) now[threadIdx.x] = (real*)(bases[threadIdx.x] + m * bases[{buffers} + threadIdx.x]);
    if (threadIdx.x == {arena}) now[{arena}] = arenas + (long long)blockIdx.x * arena;
    __syncthreads();
    run(program, 0, instructions, records, now);
    if (!descent) continue;
    real norm = norm_of(now[{grad}], weights), loss = now[{out}][0];
    if (threadIdx.x == 0 && !(norm - norm == real(0) && loss - loss == real(0))) alive[m] = 0;
    if (threadIdx.x == 0) now[{norm}][0] = norm;
    __syncthreads();
    if (alive[m]) run(program, instructions, instructions + descent, records, now);
    __syncthreads();
  }}
}}
"""


@dataclass(frozen=True, eq=False)
class Kernel:
    """A program and the optimiser's for a GPU."""

    text: str  # of a kernel `steps`, the same for programs of the same instructions at other places
    records: np.ndarray  # int32 (instructions, words)
    instructions: int  # of the gradient; behind them are those of the optimiser
    arena: int  # numbers that each block has


def write_kernel(
    program: Program, descent: Program | None, dtype: str, threads: int, blocks: int, shared: int
) -> Kernel:
    """`blocks`: that a multiprocessor runs at once; `shared`: numbers of shared memory of each."""
    whole = max(one.arena for one in (program, descent) if one is not None)
    writer = Writer(threads, shared, 4 if dtype == "float32" else 8, -(-whole // LINE) * LINE + LINE)
    for one in (program, descent):
        for kind, words in instructions(one) if one is not None else ():
            WRITERS[kind](writer, words)
    width = max(len(record) for record in writer.records)
    records = np.zeros((len(writer.records), width), np.int32)
    for row, record in zip(records, writer.records):
        row[: len(record)] = record
    functions = [f"__device__ __noinline__ void {name}{body}" for body, name in writer.pointwise.items()]
    cases = "\n    ".join(f"case {number}: {call} break;" for call, number in writer.calls.items())
    buffers = {"buffers": BUFFERS, "arena": ARENA, "grad": GRAD, "out": OUT, "norm": NORM}
    kernel = KERNEL.format(cases=cases, blocks=blocks, **buffers)
    text = write_header(writer, dtype, width) + TEXT + "\n" + "\n".join(functions) + kernel
    return Kernel(text, records, program.count, writer.arena + -(-writer.scratch // LINE) * LINE)


def write_header(writer: Writer, dtype: str, width: int) -> str:
    suffix, format_ = ("##f", "float") if dtype == "float32" else ("", "double")
    vectors = [(0, "float4", "xyzw")] if dtype == "float32" else [(0, "double2", "xy"), (2, "double2", "xy")]
    four = " ".join(
        f"{{ {kind} v = *(const {kind}*)(from + {i}); "
        + " ".join(f"to[{i + k}] = v.{name};" for k, name in enumerate(names))
        + " }"
        for i, kind, names in vectors
    )
    table = ", ".join(map(str, writer.tables)) or "0"
    sizes = {"threads": writer.threads, "shared": writer.shared, "words": width}
    return HEADER.format(format=format_, suffix=suffix, four=four, table=table, **sizes)
