"""Measure the cost of a member-step against depth, width, length and members, and fit a power law to the upper half of each."""

import math
from collections.abc import Sequence
from functools import partial

from benchmarks.networks import engine_step, processor_settings
from benchmarks.steps import ENGINES
from engine.benchmarks.record import Results
from engine.benchmarks.workers import Variant, Workers
from rankfall.train.device import keep_pages

SIZES = {
    "depth": (1, 2, 4, 8, 16),
    "width": (16, 32, 64, 128, 256),
    "length": (8, 16, 32, 64, 128),
    "members": (1, 4, 16, 64, 256),
}
STACK, DROPOUT = 8, 0.1  # members where another size grows; the dropout of the default run


def measure(results: Results) -> None:
    axes = {"depth": (1, 2)} if results.tiny else SIZES
    with Workers() as workers:
        for axis, sizes in axes.items():
            for engine in ENGINES:
                variants = {size: choose_variant(engine, axis, size) for size in sizes}
                rates = workers.rates(variants, results.tiny, seconds=0.15)
                costs = [1e3 / rates[size] for size in sizes]
                unit = "ms" if axis == "members" else "ms a member"
                labels = {"network": "sorting", "variant": engine, "axis": axis}
                for size, cost in zip(sizes, costs):
                    ratio = {"ratio": cost / costs[0], "against": f"{axis} {sizes[0]}"}
                    results.add("cost", cost, unit, **labels, size=size, **ratio)
                upper = len(sizes) // 2 if len(sizes) > 2 else 0
                results.add("exponent", fit_exponent(sizes[upper:], costs[upper:]), "", **labels)


def choose_variant(engine: str, axis: str, size: int) -> Variant:
    """Return the step of a stack. It counts for all its members, or once where their number grows."""
    setting, count, units = processor_settings()["SAN+skip"], size, 1
    if axis != "members":
        setting, count, units = setting.resize(axis, size), STACK, STACK
    return Variant(partial(engine_step, setting, engine, count, DROPOUT), units, keep_pages)


def fit_exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return b of cost = a size^b by least squares between the logarithms."""
    x, y = [math.log(size) for size in sizes], [math.log(cost) for cost in costs]
    x_mean, y_mean = sum(x) / len(x), sum(y) / len(y)
    return sum((a - x_mean) * (b - y_mean) for a, b in zip(x, y)) / sum((a - x_mean) ** 2 for a in x)
