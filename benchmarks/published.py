"""Steps of the published memorization network, of `workflow/presets/paper.yaml` the longest training by far: by each engine, and its five
seeds as one stack on two threads, a step at a time and two.

python -m benchmarks.published
"""

import statistics
import time
from collections.abc import Callable

NAME = "memorization published_memorization published_memorization 6"
SEEDS, ROUNDS = 5, 5


def main() -> None:
    from benchmarks import networks
    from benchmarks.workers import PROCESSES, Variant, workers

    variants = {engine: Variant(f"networks:{engine}_step", (NAME, 1)) for engine in networks.engines(NAME)}
    with workers() as running:
        rates = running.rates(variants, rounds=3, seconds=1.0)
    for engine, rate in rates.items():
        print(f"{1e3 * PROCESSES / rate:4.0f} ms a step of a thread, two at a time: {engine}")
    for what, seconds in on_two_threads().items():
        print(f"{1e3 * seconds:4.0f} ms a step of {SEEDS} networks on two threads: {what}")


def on_two_threads() -> dict[str, float]:
    """Seconds of a step, each way in turn: the median."""
    import torch

    from benchmarks import networks

    members, batch, objective = networks.stack(NAME, SEEDS, machine=True)
    ways: dict[str, Callable[[], object]] = {
        "one after the other": lambda: [members.steps(objective, [batch]) for _ in range(2)],
        "two together": lambda: members.steps(objective, [batch] * 2),
    }
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        found: dict[str, list[float]] = {what: [] for what in ways}
        for _ in range(ROUNDS):
            for what, steps in ways.items():
                began = time.monotonic()
                steps()
                found[what].append((time.monotonic() - began) / 2)
    finally:
        torch.set_num_threads(before)
    return {what: statistics.median(values[1:]) for what, values in found.items()}


if __name__ == "__main__":
    main()
