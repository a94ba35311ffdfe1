"""Guards the tutorial: every shell block of docs/tutorial.md, in order, in a copy of the checkout, does what the page says it does."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
# What `make test` was given is not for these.
MAKES = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "ARGS", "CONFIG", "PROFILE", "PYTHON", "PYTHONPATH", "SNAKEMAKE_PROFILE")


def clone(folder: Path) -> Path:
    """Copy the files that a clone has. Its .venv runs the copy with the interpreter of the tests, as `make setup` would have left it."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    bin_ = folder / ".venv" / "bin"
    bin_.mkdir(parents=True)
    path = f"{folder}/src:{folder}/engine/src"
    for name, command in {"python": "", "rankfall": "-m rankfall.cli "}.items():
        wrapper = bin_ / name
        wrapper.write_text(f'#!/bin/sh\nPYTHONPATH={path} exec {sys.executable} {command}"$@"\n')
        wrapper.chmod(0o755)
    makefile = (folder / "Makefile").read_text()
    stamp = re.search(r"^STAMP := .venv/installed-\$\(shell (.*)\)$", makefile, re.MULTILINE)
    number = subprocess.run(stamp[1], shell=True, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
    (folder / ".venv" / f"installed-{number}").touch()
    return folder


def run_block(block: str, folder: Path) -> str:
    left = {name: value for name, value in os.environ.items() if name not in MAKES} | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block], cwd=folder, env=left, stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, f"{block}\n{done.stdout}"
    return done.stdout


def first_words(output: str) -> set[str]:
    """Return the rows' names in tables that were printed."""
    return set(re.findall(r"^  (\w+) ", output, re.MULTILINE))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("make") is None, reason="the page types make")
def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    folder = clone(tmp_path / "rankfall")
    setup, plan, run, normaliser, task, measure, question = BLOCKS
    run_block(setup, folder)
    assert "8 cells" in run_block(plan, folder)
    assert {"plain", "skip"} <= first_words(run_block(run, folder))
    tables, figures = folder / "results/mine/tables", folder / "results/mine/figures"
    before = pd.read_parquet(tables / "cells.parquet")
    assert len(before) == 8

    assert "mine" in first_words(run_block(normaliser, folder))
    after = pd.read_parquet(tables / "cells.parquet")
    assert set(before.key) < set(after.key)
    assert len(after) == 12
    assert (after[after.key.isin(before.key)].set_index("key").seconds == before.set_index("key").seconds).all()
    orders = pd.read_parquet(tables / "orders.parquet")
    assert orders[orders.normaliser.fillna("").str.startswith("square")].order.notna().any()

    run_block(task, folder)
    cells = pd.read_parquet(tables / "cells.parquet")
    assert (cells.task == "parity").sum() == 12
    assert set(cells.status) == {"done"}

    run_block(measure, folder)
    alike = pd.read_parquet(tables / "mylab.alike.parquet")
    assert len(alike) == 24 * 5
    assert alike.cosine.between(-1, 1).all()
    plain = alike[(alike.architecture == "plain") & (alike.training == "init") & (alike.layer == 4)]
    assert plain.cosine.min() > 0.99  # attention alone: all tokens point the same way after four layers
    assert (figures / "alike.png").stat().st_size > 5000

    assert "plain" in run_block(question, folder)


def test_every_block_is_of_the_tutorial() -> None:
    assert len(BLOCKS) == 7
    assert PAGE.count("```") == 2 * len(BLOCKS), "a block that is not sh is not run"
