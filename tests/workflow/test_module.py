"""Guards the layout that the catalogue of Snakemake workflows asks for, and that another workflow can take this one as a module."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
USER = """
configfile: "config/config.yaml"


module rankfall:
    snakefile:
        {snakefile!r}
    config:
        config


use rule * from rankfall
"""


def user(folder):
    """Another workflow in a folder of its own, with a small configuration."""
    for part in ("workflow", "config"):
        (folder / part).mkdir(parents=True)
    text = USER.format(snakefile=str(ROOT / "workflow" / "Snakefile"))
    (folder / "workflow" / "Snakefile").write_text(text)
    (folder / "config" / "config.yaml").write_text((ROOT / "workflow" / "presets" / "smoke.yaml").read_text())
    return folder


def snakemake(folder, *arguments):
    left = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SNAKEMAKE_PROFILE")}
    command = [sys.executable, "-m", "snakemake", "--cores", "2", *arguments]
    done = subprocess.run(command, cwd=folder, env=left | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_another_workflow_runs_it_as_a_module(tmp_path):
    folder = user(tmp_path / "theirs")
    (folder / "workflow" / "Snakefile").open("a").write('\n\nonstart:\n    open("theirs.txt", "w").write("began")\n')
    snakemake(folder)
    assert (folder / "theirs.txt").read_text() == "began"  # their own handler, not ours
    assert (folder / "results/smoke/figures/paths.png").is_file()
    (plan,) = (folder / "results/smoke/plan").glob("*/config.json")
    assert json.loads(plan.read_text())["name"] == "smoke"
    assert "Nothing to be done" in snakemake(folder)
