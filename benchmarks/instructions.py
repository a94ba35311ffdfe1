"""Where a member's step spends its time: the machine's program, instruction by instruction.

    python -m benchmarks.instructions [NETWORK ...]

Of the networks of `python -m benchmarks.machine`. Each instruction is run by itself, often, so what it reads lies in the nearest cache that
holds it; what the whole step takes beyond their sum is waiting for memory. Products also say how many operations they do a second.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from rankfall.run.jobs.processor import processor
from thousandfold import codes
from thousandfold.operations import OPERATIONS
from thousandfold.runtime import Machine

ROUNDS, SECONDS = 5, 0.0005
KINDS = {
    "LIN": "product with weights",
    "WGRAD": "gradient of weights",
    "BMM": "product for each sequence",
    "PW": "pointwise group",
    "RED": "sum or maximum",
}


@dataclass(frozen=True)
class Spent:
    kind: str
    what: str  # sizes of a product, operations of a group
    seconds: float
    operations: float  # of its products, else 0


def instructions(words: np.ndarray, count: int) -> Iterator[np.ndarray]:
    """Each with its number and its length before it."""
    at = 0
    for _ in range(count):
        yield words[at : at + words[at + 1]]
        at += words[at + 1]


def describe(words: Sequence[int]) -> tuple[str, float]:
    """What an instruction is about, and the floating-point operations of a product."""
    kind, p = codes.INSTRUCTIONS[words[0]], words[2:]
    if kind == "LIN":
        return f"{p[9]} x {p[10]}, {p[11]} runs of {p[12]}", 2.0 * p[9] * p[10] * p[11] * p[12]
    if kind == "WGRAD":
        return f"{p[6]} x {p[7]}, {p[8]} runs of {p[9]}", 2.0 * p[6] * p[7] * p[8] * p[9]
    if kind == "BMM":
        return f"{p[8]} of {p[9]} x {p[10]} x {p[11]}, {p[12]} sequences", 2.0 * p[8] * p[9] * p[10] * p[11] * p[12]
    if kind == "PW":
        return f"{np.prod(p[8 : 8 + p[0]])} numbers: {' '.join(operations_of(p))}", 0.0
    return "", 0.0


def operations_of(p: Sequence[int]) -> Iterator[str]:
    """Of a pointwise group: what is copied in and out, and each operation."""
    dimensions, streams, operations, constants, sums = p[0], *p[4:8]
    at = 8 + dimensions
    modes = [p[at + k * (4 + dimensions) + 2] for k in range(streams)]
    yield f"({modes.count(0)} in place, {modes.count(1)} in, {modes.count(2)} out, {sums} sums)"
    at += streams * (4 + dimensions) + 2 * constants
    for k in range(operations):
        yield OPERATIONS[p[at + 5 * k]].name


def seconds_of(run: Callable[[], Any]) -> float:
    run()
    count, found = 1, []
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
        found.append((time.perf_counter() - began) / count)
    return min(found)


def profile(members: Any, objective: Any, batch: Any) -> tuple[list[Spent], float]:
    """Each instruction of gradient and optimiser, and the seconds of both programs, for the first member."""
    engine = members.engine.engine  # that of thousandfold, inside what serves it with networks of Rankfall
    launch = engine.launch(members, members.engine.work(batch), 0)
    members.step(objective, batch)
    machine = Machine(engine.numbers)
    bases = launch.bases.copy()
    bases[codes.ARENA] = engine.arenas[0].ctypes.data

    def run(words: np.ndarray, count: int) -> None:
        machine.run(words, count, bases, launch.strides, 0, 1)

    call = seconds_of(lambda: run(np.zeros(2, np.int64), 0))
    found, whole = [], 0.0
    for program in (launch.program.program, launch.descent):
        whole += seconds_of(lambda program=program: run(program.words, program.count)) - call
        for words in instructions(program.words, program.count):
            what, operations = describe(words.tolist())
            spent = seconds_of(lambda words=words: run(words.copy(), 1)) - call
            found.append(Spent(codes.INSTRUCTIONS[words[0]], what, spent, operations))
    return found, whole


def report(name: str, found: Sequence[Spent], whole: float, most: int = 12) -> None:
    total = sum(one.seconds for one in found)
    print(f"\n{name}: {1000 * whole:.3f} ms a member-step, {1000 * total:.3f} ms by instructions alone")
    by_kind: defaultdict[str, list[Spent]] = defaultdict(list)
    for one in found:
        by_kind[one.kind].append(one)
    for kind, ones in sorted(by_kind.items(), key=lambda item: -sum(one.seconds for one in item[1])):
        seconds, operations = sum(one.seconds for one in ones), sum(one.operations for one in ones)
        pace = f", {operations / seconds / 1e9:.0f} GFLOP/s" if operations else ""
        print(f"{seconds / total:6.1%} {1000 * seconds:8.3f} ms  {len(ones):4} {KINDS.get(kind, kind)}{pace}")
    alike: defaultdict[tuple[str, str], list[Spent]] = defaultdict(list)
    for one in found:
        alike[one.kind, one.what].append(one)
    print("of which:")
    for (kind, what), ones in sorted(alike.items(), key=lambda item: -sum(one.seconds for one in item[1]))[:most]:
        seconds, operations = sum(one.seconds for one in ones), sum(one.operations for one in ones)
        pace = f" {operations / seconds / 1e9:.0f} GFLOP/s" if operations else ""
        print(f"{seconds / total:6.1%} {1e6 * seconds / len(ones):8.1f} us x {len(ones):3} {kind}{pace}: {what}")


def main() -> None:
    from benchmarks.machine import NETWORKS, OWN, stack_of

    sys.path.insert(0, str(OWN))
    torch.set_num_threads(1)
    print(processor())
    for name in sys.argv[1:] or list(NETWORKS):
        report(name, *profile(*stack_of(NETWORKS[name], "machine", 1)))


if __name__ == "__main__":
    main()
