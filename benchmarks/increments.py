"""Count the jobs that a cluster gets when a finished grid of ten thousand cells grows by a seed, a depth or an architecture.

    python -m benchmarks.increments

Nothing is computed: the files of the finished run are made up, and a dry run counts the jobs.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "workflow"))

if __name__ == "__main__":
    from increments import count, finished, steps

    configs = steps()
    with tempfile.TemporaryDirectory() as folder:
        checkout = finished(Path(folder) / "checkout", configs["nothing"])
        print(f"{'added':<18}{'cluster jobs':>14}{'CPU s':>8}{'MiB':>7}")
        for added, config in configs.items():
            cost = count(checkout, config)
            print(f"{added:<18}{cost.submitted:>14}{cost.seconds:>8.1f}{cost.megabytes:>7.0f}", flush=True)
