"""Guards that a run with nothing to do costs little beside Snakemake's own start: it loads no large library, and says so in one line."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

# Stands for Snakemake with nothing to do.
PROGRAM = """
import json, subprocess, sys
from rankfall import cli
start = subprocess.Popen
IDLE = "import os; open(os.environ['RANKFALL_EVENTS'], 'a').write(" + repr(json.dumps(
    {"event": "text", "text": "Nothing to be done (all files are there).", "time": 0, "level": "INFO"}) + chr(10)) + ")"
subprocess.Popen = lambda command, **more: start([sys.executable, "-c", IDLE], **more)
code = cli.main(["run"])
print(code, *sorted({"torch", "pandas", "pyarrow.dataset", "rich.live", "numpy.random"} & sys.modules.keys()))
"""


def test_it_loads_no_large_library(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        (Path(__file__).parents[3] / "workflow" / "presets" / "smoke.yaml").read_text()
    )
    cells = tmp_path / "results" / "smoke" / "tables" / "cells.parquet"
    cells.parent.mkdir(parents=True)
    names = dict.fromkeys(("task", "architecture", "training", "reason"), "x") | {"depth": 1, "seed": 0}
    pq.write_table(pa.Table.from_pylist([names | {"status": "done"}]), cells)
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=True)
    first, *_, last = done.stdout.splitlines()
    assert first == "==> nothing to do: results/smoke is up to date with config.yaml and the code"
    assert last == "0"
    assert sorted(path.name for path in (tmp_path / "results" / "smoke").iterdir()) == ["tables"]
