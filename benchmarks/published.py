"""A step of the published memorization network by each engine: of `workflow/presets/paper.yaml` the longest training by far.

python -m benchmarks.published
"""

from benchmarks import networks
from benchmarks.workers import PROCESSES, Variant, workers

NAME = "memorization published_memorization published_memorization 6"


def main() -> None:
    variants = {engine: Variant(f"networks:{engine}_step", (NAME, 1)) for engine in networks.engines(NAME)}
    with workers() as running:
        rates = running.rates(variants, rounds=3, seconds=1.0)
    for engine, rate in rates.items():
        print(f"{1e3 * PROCESSES / rate:4.0f} ms a step of a thread, two at a time: {engine}")


if __name__ == "__main__":
    main()
