"""Planning, a dry run of everything and one with nothing to do, at 100 to 50,000 cells: seconds of a processor and memory.

Nothing is computed: the finished run is made up, as for `python -m benchmarks.increments`.
"""

import tempfile
from pathlib import Path
from typing import Any

from benchmarks.growth import exponent
from benchmarks.processes import run
from benchmarks.record import Results

SIZES = (100, 1_000, 10_000, 50_000)
PLAN = "import sys; from rankfall.run.plan import make_plan; print(len(make_plan(sys.argv[1]).cells))"


def measure(results: Results) -> None:
    from checkout import Checkout
    from increments import count, finished

    found: dict[str, list[float]] = {}
    sizes = (20,) if results.tiny else SIZES
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            given = config(size)
            fresh = Checkout.make(Path(folder) / "fresh", given)
            started = run(["-c", "import rankfall.run.plan"], fresh.folder).seconds
            planned = run(["-c", PLAN, "config.yaml"], fresh.folder).seconds
            dry, nothing = count(fresh, given), count(finished(Path(folder) / "finished", given), given)
        for variant, seconds in (("plan", planned), ("dry run", dry.seconds), ("nothing to do", nothing.seconds)):
            found.setdefault(variant, []).append(seconds)
            results.add(
                "time", seconds, "s", variant=variant, axis="cells", size=size,
                ratio=seconds / started, against="starting Python, importing it"
            )  # fmt: skip
        for variant, counted in (("dry run", dry), ("nothing to do", nothing)):
            results.add("memory", counted.megabytes, "MiB", variant=variant, axis="cells", size=size)
    for variant, seconds_of in found.items():
        if len(sizes) > 2:
            results.add("exponent", exponent(sizes[-2:], seconds_of[-2:]), "", variant=variant, axis="cells")


def config(cells: int) -> dict[str, Any]:
    """Five architectures, up to twenty depths, and seeds."""
    from increments import grid

    depths = min(20, max(1, cells // 50))
    return grid(max(1, cells // (5 * depths)), depths)
