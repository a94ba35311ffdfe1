"""Plan a million cells and write the plan: processor time without the imports, and peak memory.

python -m benchmarks.million [--cells 1000000]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Runs in its own process, which does not import torch.
PROGRAM = """
import json, resource, sys, time
from rankfall.run.plan import make_plan
from rankfall.run.snakemake.run_plan import RunPlan
raw, times = json.load(open(sys.argv[1])), [time.process_time()]
plan = make_plan(raw)
times.append(time.process_time())
run = RunPlan.make(plan, raw)
times.append(time.process_time())
run.write()
times.append(time.process_time())
for label, began, ended in zip(("plan", "names", "writing"), times, times[1:]):
    print(f"{label:10} {ended - began:6.2f} s")
megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"{'together':10} {times[-1] - times[0]:6.2f} s {megabytes:6.0f} MiB")
"""

if __name__ == "__main__":
    from benchmarks.increments import grid

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=1_000_000, help="a thousand networks, or fewer, with seeds")
    cells = parser.parse_args().cells
    depths = max(1, min(200, cells // 5000))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.json"
        file.write_text(json.dumps(grid(cells // (5 * depths), depths) | {"results": f"{folder}/results"}))
        subprocess.run([sys.executable, "-c", PROGRAM, str(file)], cwd=ROOT, check=True)
