"""Measure planning, a dry run of everything, and a dry run with nothing to do, at 100 to 50,000 cells: processor time and memory.

Nothing is computed: the files of the finished run are made up, as for `python -m benchmarks.increments`.
"""

import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from benchmarks.growth import fit_exponent
from engine.benchmarks.record import Results

SIZES = (100, 1_000, 10_000, 50_000)  # cells of a grid
START = "import rankfall.run.plan"
PLAN = "import sys; from rankfall.run.plan import make_plan; print(len(make_plan(sys.argv[1]).cells))"


def measure(results: Results) -> None:
    from checkout import Checkout

    from benchmarks.increments import dry_run, grid, make_finished, run_measured

    sizes = (20,) if results.tiny else SIZES
    times = defaultdict(list)
    for size in sizes:
        depths = min(20, max(1, size // 50))
        config = grid(max(1, size // (5 * depths)), depths)
        with tempfile.TemporaryDirectory() as folder:
            fresh = Checkout.make(Path(folder) / "fresh", config)
            _, start, _ = run_measured([sys.executable, "-c", START], fresh)
            _, plan, _ = run_measured([sys.executable, "-c", PLAN, "config.yaml"], fresh)
            dry, nothing = dry_run(fresh, config), dry_run(make_finished(Path(folder) / "finished", config), config)
        for variant, seconds in (("plan", plan), ("dry run", dry.seconds), ("nothing to do", nothing.seconds)):
            times[variant].append(seconds)
            ratio = {"ratio": seconds / start, "against": "starting Python, importing it"}
            results.add("time", seconds, "s", variant=variant, axis="cells", size=size, **ratio)
        for variant, cost in (("dry run", dry), ("nothing to do", nothing)):
            results.add("memory", cost.megabytes, "MiB", variant=variant, axis="cells", size=size)
    for variant, seconds in times.items() if len(sizes) > 1 else ():
        results.add("exponent", fit_exponent(sizes[-2:], seconds[-2:]), "", variant=variant, axis="cells")
