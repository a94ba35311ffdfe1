"""Measure speed and memory, each as a ratio to a baseline that the same run measures: `make bench`, or `make bench ARGS="steps growth"`."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEFAULT = {
    "steps": "benchmarks.steps:measure_default",
    "kinds": "benchmarks.steps:measure_kinds",
    "growth": "benchmarks.growth:measure",
    "planning": "benchmarks.planning:measure",
    "watch": "benchmarks.watch:measure",
}
# Not by default: it compiles for most of an hour, and needs JAX.
RIVALS = {"rivals": "engine.benchmarks.rivals:measure"}

if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / folder) for folder in ("src", "engine/src", "tests", "tests/workflow")]
    from engine.benchmarks.__main__ import main

    main(DEFAULT | RIVALS, list(DEFAULT), ROOT / "results" / "bench")
