"""Compare the rate of steps with a clean module of the same network, in two processes of one thread each.

`steps` measures networks of the default run by both engines, with and without dropout. `kinds` measures other attentions, norms and
normalisers by the machine. Further rows have the seconds before the first step, for compiling or tracing, and the number of steps of
one network after which these are recovered.
"""

import math
import shutil
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch

from benchmarks.gpu.limits import count_work
from benchmarks.networks import CPU, engine_step, processor_settings
from engine.benchmarks.clean import KINDS, SHAPES, make_step
from engine.benchmarks.record import Results
from engine.benchmarks.workers import PROCESSES, Variant, Workers
from rankfall.train.device import keep_pages

STACK = 16  # members of a stack
SQUARE = 512  # rows of the matrices whose product is the peak of a core
CLEAN, COMPILED = "clean module, two processes", "clean module compiled, two processes"
ENGINES = ("plain", "machine") if find_spec("numba") else ("plain",)


def measure_default(results: Results) -> None:
    """Compare networks of the default run, by each engine."""
    compare(results, ["SAN+skip", "hull", "mlm"], ENGINES, compiled_at=(0.0, 0.1))


def measure_kinds(results: Results) -> None:
    """Compare other attentions, norms and normalisers, by the machine."""
    compare(results, list(KINDS), ("machine",), compiled_at=(0.0,))


def compare(results: Results, names: list[str], engines: tuple[str, ...], compiled_at: tuple[float, ...]) -> None:
    """Measure the rates of these networks, beside a clean module of each."""
    tiny = results.tiny
    cases = [(name, dropout) for name in names for dropout in (0.0, 0.1)]
    with Workers() as workers:
        peak = measure_peak(workers, tiny)
        results.add("arithmetic", peak / 1e9, "GFLOP/s", variant="product of matrices")
        # The first network waits for imports, which are no network's, so it is measured twice.
        for number, (name, dropout) in enumerate(cases[:1] if tiny else [cases[0], *cases]):
            variants = variants_of(name, dropout, engines, dropout in compiled_at and not tiny, tiny)
            rates, seconds = workers.rates(variants, tiny), workers.first_step
            share, clean = count_operations(name) / peak, rates[CLEAN, 1]
            for label, rate in rates.items() if number or tiny else ():
                labels = {"network": name, "variant": label[0], "members": label[1], "dropout": dropout}
                ratio = {"ratio": rate / clean, "against": CLEAN, "of_arithmetic": rate * share}
                results.add("rate", rate, "member-steps/s", **labels, **ratio)
                results.add("first step", seconds[label], "s", **labels)
                if label in ((COMPILED, 1), ("machine", 1)):
                    later = seconds[label] - seconds[CLEAN, 1]
                    results.add("pays from", steps_to_recover(later, rate, clean), "steps", **labels)


def variants_of(name: str, dropout: float, engines: tuple[str, ...], compiled: bool, tiny: bool) -> dict[Any, Variant]:
    """Return the variants by name and members."""
    variants = {(CLEAN, 1): Variant(partial(make_step, name, dropout))}
    if compiled and shutil.which("g++") and not SHAPES[name].masked:
        variants[COMPILED, 1] = Variant(partial(make_step, name, dropout, compiled=True))
    setting = processor_settings()[name]
    for engine in engines:
        for count in (1, 2 if tiny else STACK):
            variants[engine, count] = Variant(partial(engine_step, setting, engine, count, dropout), count, keep_pages)
    return variants


def steps_to_recover(seconds: float, rate: float, baseline: float) -> float:
    """Return the steps of one network after which a higher rate has saved these seconds. The rates are those of two processes."""
    saved = PROCESSES / baseline - PROCESSES / rate
    return seconds / saved if saved > 0 else math.inf


def count_operations(name: str) -> float:
    """Return the floating-point operations of a step of one member."""
    setting = processor_settings()[name]
    members, batch, objective = setting.members([0], CPU, dropout=0.0), setting.batch(1, CPU), setting.objective()
    return count_work(lambda: members.step(objective, batch), members).operations


def measure_peak(workers: Workers, tiny: bool) -> float:
    """Return the floating-point operations a second of both processes in products of large matrices."""
    width = 64 if tiny else SQUARE
    variant = Variant(partial(multiply_matrices, width), 2 * width**3, keep_pages)
    return workers.rates({"product": variant}, tiny)["product"]


def multiply_matrices(width: int) -> Callable[[], object]:
    """Return a product of two random matrices (width, width)."""
    a, b = torch.randn(2, width, width)
    return lambda: a @ b
