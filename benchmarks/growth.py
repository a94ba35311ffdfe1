"""Cost of a member-step against depth, width, length and members, with the exponent of the power law that fits the upper half of each."""

import math
from collections.abc import Sequence

from benchmarks import networks
from benchmarks.record import Results
from benchmarks.steps import length
from benchmarks.workers import Variant, workers

SIZES = {
    "depth": (1, 2, 4, 8, 16),
    "width": (16, 32, 64, 128, 256),
    "length": (8, 16, 32, 64, 128),
    "members": (1, 4, 16, 64, 256),
}
BASE = {"depth": 6, "width": 48, "heads": 2, "length": 8}
STACK = 8


def measure(results: Results) -> None:
    with workers() as running:
        for axis, sizes in SIZES.items():
            sizes = sizes[:2] if results.tiny else sizes
            for engine in networks.engines(tuple(BASE.items())):
                # A stack's cost is that of all its members; else it is that of one, in a stack.
                variants = {str(size): variant(engine, axis, size) for size in sizes}
                rates = running.rates(variants, **length(results.tiny, 0.15))
                costs = [1e3 / rates[str(size)] for size in sizes]
                for size, cost in zip(sizes, costs):
                    results.add(
                        "cost", cost, "ms" if axis == "members" else "ms a member", network="sorting", variant=engine, axis=axis, size=size,
                        ratio=cost / costs[0], against=f"{axis} {sizes[0]}",
                    )  # fmt: skip
                upper = len(sizes) // 2 if len(sizes) > 2 else 0
                fitted = exponent(sizes[upper:], costs[upper:])
                results.add("exponent", fitted, "", network="sorting", variant=engine, axis=axis)


def variant(engine: str, axis: str, size: int) -> Variant:
    """Of two processes together: halves of the time of one."""
    if axis == "members":
        return Variant(f"networks:{engine}_step", (tuple(BASE.items()), size, 0.1), 1)
    return Variant(f"networks:{engine}_step", (tuple((BASE | {axis: size}).items()), STACK, 0.1), STACK)


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """b of cost = a size^b, by least squares between the logarithms."""
    x, y = [math.log(size) for size in sizes], [math.log(cost) for cost in costs]
    middle, mean = sum(x) / len(x), sum(y) / len(y)
    return sum((a - middle) * (b - mean) for a, b in zip(x, y)) / sum((a - middle) ** 2 for a in x)
