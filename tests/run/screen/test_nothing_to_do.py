"""Guards that a run with nothing to do starts no Snakemake, loads no large library, writes nothing, and says so in one line."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rankfall.run.config.types import read
from rankfall.run.plan import make_plan
from rankfall.run.snakemake.publish import publish
from rankfall.run.snakemake.run_plan import RunPlan

PROGRAM = """
import subprocess, sys
from rankfall import cli
def refuse(*words, **more): raise AssertionError(words)
subprocess.Popen = refuse
code = cli.main(["run"])
print(code, *sorted({"torch", "pandas", "pyarrow.dataset", "rich.live", "numpy.random", "snakemake"} & sys.modules.keys()))
"""


def files(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def run(folder: Path) -> list[str]:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_it_starts_nothing_and_publishes_what_was_edited(tmp_path: Path) -> None:
    raw = read(Path(__file__).parents[3] / "workflow" / "presets" / "smoke.yaml")
    (tmp_path / "config.yaml").write_text(json.dumps(raw))
    results = tmp_path / "results" / "smoke"
    planned = RunPlan.make(make_plan(raw), raw, results)
    for name, file in planned.final.items():
        (results / file).parent.mkdir(parents=True, exist_ok=True)
        (results / file).write_text(name)
    names = dict.fromkeys(("task", "architecture", "training", "reason"), "x") | {"depth": 1, "seed": 0}
    pq.write_table(pa.Table.from_pylist([names | {"status": "done"}]), results / planned.final["tables/cells.parquet"])
    publish(planned)
    before = files(results)
    first, *_, last = run(tmp_path)
    assert first == "==> nothing to do: results/smoke is up to date with config.yaml and the code"
    assert last == "0"
    assert files(results) == before
    (results / "tables" / "paths.parquet").write_text("edited")
    assert run(tmp_path)[:2] == ["==> published again: tables/paths.parquet", first]
    assert (results / "tables" / "paths.parquet").read_text() == "tables/paths.parquet"
