"""Translation of a program to the text of one CUDA kernel. A block of threads runs it for one member after another.

Instructions that differ only in the places of their numbers share one function, so that another layer adds only a few calls.
"""

from dataclasses import dataclass

import numpy as np

from thousandfold import codes
from thousandfold.gpu import calls, instructions, products
from thousandfold.gpu.pointwise import pointwise
from thousandfold.gpu.writer import Writer
from thousandfold.layouts import WordReader, read_instructions
from thousandfold.program.build import Program

LINE = 64  # numbers; alignment of the arena of each block


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
    """The kernel of a program and the optimiser's program for a GPU."""

    text: str  # text of the kernel `steps`; programs that differ only in places share it
    records: np.ndarray  # int32 (instructions, words)
    instructions: int  # number of instructions of the gradient; those of the optimiser follow
    arena: int  # numbers per block


def write_kernel(
    program: Program, descent: Program | None, dtype: str, threads: int, blocks: int, shared: int
) -> Kernel:
    """Return the kernel of a program. `blocks`: concurrent blocks of a multiprocessor. `shared`: numbers of shared memory per block."""
    whole = max(part.arena for part in (program, descent) if part is not None)
    writer = Writer(threads, shared, 4 if dtype == "float32" else 8, -(-whole // LINE) * LINE + LINE)
    for part in (program, descent):
        for code, words in read_instructions(part.words, part.count) if part is not None else ():
            reader = WordReader(words[2:])
            if code == codes.PW:
                pointwise(writer, reader)
            else:
                calls.CALLS[code](writer, reader.fields(code))
    width = max(len(record) for record in writer.records)
    assert width <= threads, "a thread reads one word of an instruction"
    records = np.zeros((len(writer.records), width), np.int32)
    for row, record in zip(records, writer.records):
        row[: len(record)] = record
    functions = [f"__device__ __noinline__ void {name}{body}" for body, name in writer.pointwise.items()]
    cases = "\n    ".join(f"case {number}: {call} break;" for call, number in writer.calls.items())
    buffers = {"arena": codes.ARENA, "grad": codes.GRAD, "out": codes.OUT, "norm": codes.NORM}
    kernel = KERNEL.format(cases=cases, blocks=blocks, buffers=codes.BUFFERS, **buffers)
    text = write_header(writer, dtype, width) + instructions.TEXT + products.TEXT + "\n" + "\n".join(functions) + kernel
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
