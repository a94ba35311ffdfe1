"""A step by operation: the program of a member, instruction by instruction, and how far its products are from the machine's peak.

Each instruction runs alone, often, so what it reads lies in the nearest cache that holds it. What the whole step takes beyond their sum is
waiting for memory.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from thousandfold.codes import ARENA, BMM, GEN, INSTRUCTIONS, LIN, PW, WGRAD
from thousandfold.engine import Engine, Work
from thousandfold.gpu.pointwise import Group
from thousandfold.layouts import WordReader, read_instructions
from thousandfold.operations import OPERATIONS
from thousandfold.optimizers import Rows
from thousandfold.program.build import Program

ROUNDS, SECONDS = 5, 0.0005  # of a measurement
SQUARE = 512  # rows of the matrices whose product is the peak
KINDS = {
    "LIN": "product with weights",
    "WGRAD": "gradient of weights",
    "BMM": "product for each sequence",
    "GEN": "other product",
    "PW": "pointwise group",
    "RED": "sum or maximum",
}


@dataclass(frozen=True)
class Spent:
    kind: str
    details: str  # sizes of a product, operations of a group
    seconds: float
    operations: float  # floating-point operations of a product, else 0


def describe(code: int, reader: WordReader) -> tuple[str, float]:
    """Return what an instruction computes, and the floating-point operations of a product."""
    if code == PW:
        group = Group.read(reader)
        names = [OPERATIONS[code].name for code, *_ in group.code]
        return f"{math.prod(group.sizes)} numbers: {' '.join(names)}, {len(group.sums)} sums", 0.0
    p = reader.fields(code)
    if code == LIN:
        return f"{p.columns} x {p.terms}, {p.rows} runs of {p.run}", 2.0 * p.columns * p.terms * p.rows * p.run
    if code == WGRAD:
        return f"{p.rows} x {p.columns}, {p.terms} runs of {p.run}", 2.0 * p.rows * p.columns * p.terms * p.run
    if code in (BMM, GEN):
        lanes = p.lanes if code == BMM else 1
        sizes = f"{p.outer} of {p.rows} x {p.columns} x {p.terms}, {lanes} sequences"
        return sizes, 2.0 * p.outer * p.rows * p.columns * p.terms * lanes
    return "", 0.0


def seconds_of(run: Callable[[], Any]) -> float:
    """Return the seconds of a call, the least of some rounds."""
    run()
    count, seconds = 1, []
    while True:  # as often as takes long enough to tell
        began = time.perf_counter()
        for _ in range(count):
            run()
        if time.perf_counter() - began > SECONDS:
            break
        count *= 2
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(count):
            run()
        seconds.append((time.perf_counter() - began) / count)
    return min(seconds)


def profile(engine: Engine, members: Rows, work: Work) -> tuple[list[Spent], float]:
    """Return each instruction of gradient and optimiser, and the seconds of both programs, for the first member."""
    from thousandfold.runtime import Machine

    engine.steps(members, [work])  # allocates
    launch = engine.launch(members, work, members.step_count)
    machine, bases = Machine(engine.numbers), launch.bases.copy()
    bases[ARENA] = engine.arenas[0].ctypes.data

    def run(words: np.ndarray, count: int) -> float:
        return seconds_of(lambda: machine.run(words, count, bases, launch.strides, 0, 1))

    call = run(np.zeros(2, np.int64), 0)
    programs: list[Program] = [launch.program.program, *([launch.descent] if launch.descent else [])]
    whole = sum(run(program.words, program.count) - call for program in programs)
    spent = []
    for program in programs:
        for code, words in read_instructions(program.words, program.count):
            details, operations = describe(code, WordReader(words[2:]))
            spent.append(Spent(INSTRUCTIONS[code], details, run(words.copy(), 1) - call, operations))
    return spent, whole


def peak(dtype: torch.dtype) -> float:
    """Return the floating-point operations a second of one thread in a product of large matrices."""
    threads, (a, b) = torch.get_num_threads(), torch.ones(2, SQUARE, SQUARE, dtype=dtype)
    torch.set_num_threads(1)
    try:
        return 2.0 * SQUARE**3 / seconds_of(lambda: a @ b)
    finally:
        torch.set_num_threads(threads)


def report(name: str, spent: Sequence[Spent], whole: float, best: float, most: int = 12) -> Iterator[str]:
    """Return the lines of a profile. `best`: operations a second at the peak."""
    total, operations = (sum(getattr(entry, field) for entry in spent) for field in ("seconds", "operations"))
    yield (
        f"{name}: {1000 * whole:.3f} ms a member-step, {1000 * total:.3f} ms by instructions alone; "
        f"{operations / whole / best:.0%} of the peak of a core, {best / 1e9:.0f} GFLOP/s"
    )

    def line(entries: Sequence[Spent]) -> str:
        seconds, operations = (sum(getattr(entry, field) for entry in entries) for field in ("seconds", "operations"))
        pace = f" {operations / seconds / best:5.0%} of the peak" if operations else ""
        return f"{seconds / total:6.1%} {1e6 * seconds:9.1f} us {len(entries):4} x {KINDS.get(entries[0].kind, entries[0].kind)}{pace}"

    by_kind, alike = defaultdict(list), defaultdict(list)
    for entry in spent:
        by_kind[entry.kind].append(entry)
        alike[entry.kind, entry.details].append(entry)
    in_order = lambda groups: sorted(groups.values(), key=lambda entries: -sum(entry.seconds for entry in entries))  # noqa: E731
    yield from map(line, in_order(by_kind))
    yield "of which:"
    yield from (f"{line(entries)}: {entries[0].details}" for entries in in_order(alike)[:most])
