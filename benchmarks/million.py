"""Planning a million cells, writing the plan, and starting one job of it: seconds of a processor over the imports, and memory.

python -m benchmarks.million [--cells 1000000]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
START = """
import json, resource, sys, time
import rankfall.commands._planned as planned
from rankfall.commands import train
from rankfall.commands._arguments import add_arguments
from rankfall.run.plan import make_plan
from rankfall.run.snakemake.run_plan import RunPlan
import argparse
def spent(): return time.process_time()
def megabytes(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
"""
RUN = """
began = spent()
raw = json.load(open(sys.argv[1]))
made = make_plan(raw)
plan = spent() - began
run = RunPlan.make(made, raw)
named = spent() - began
run.write()
place = list(made.shards)[-1]
print(json.dumps([plan, named, spent() - began, megabytes(), str(run.config), run.jobs["/".join(("train", *place))].digest, *place]))
"""
JOB = """
config, expect, task, shard = sys.argv[1:]
parser = argparse.ArgumentParser(); add_arguments(parser, train.ARGUMENTS)
args = parser.parse_args(["--config", config, "--expect", expect, "--task", task, "--shard", shard])
began = spent()
own = planned.plan_job(args, "train", task, shard, cells=[f"shards/{task}/{shard}.pickle"])
assert own.run.plan is None, "it planned the whole grid"
print(json.dumps([spent() - began, megabytes(), len(own.plan.cells)]))
"""
PARSE = """
from pathlib import Path
config, expect, task, shard = sys.argv[1:]
began = spent()
assert RunPlan.load(Path(config).parent).jobs[f"train/{task}/{shard}"].digest == expect
print(json.dumps([spent() - began, megabytes()]))
"""


def main() -> None:
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "tests" / "workflow")]
    from increments import grid

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=1_000_000, help="a thousand networks, or fewer, with seeds")
    args = parser.parse_args()
    depths = max(1, min(200, args.cells // 5000))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.json"
        results = {"results": str(Path(folder) / "results")}
        file.write_text(json.dumps(grid(args.cells // (5 * depths), depths) | results))
        plan, named, written, megabytes, *job = spent(RUN, str(file))
        print(f"plan        {plan:6.2f} s\nits name    {named - plan:6.2f} s\nwriting it  {written - named:6.2f} s")
        print(f"all of it   {written:6.2f} s {megabytes:6.0f} MiB", flush=True)
        seconds, megabytes, cells = spent(JOB, *job)
        print(f"a job       {seconds:6.2f} s {megabytes:6.0f} MiB, of {cells} cells")
        seconds, megabytes = spent(PARSE, *job)
        print(f"parsing     {seconds:6.2f} s {megabytes:6.0f} MiB, in a job of a cluster")


def spent(program: str, *arguments: str) -> Any:
    """What a Python of its own says."""
    command = [sys.executable, "-c", START + program, *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
