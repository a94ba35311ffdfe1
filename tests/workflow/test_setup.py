"""The environment that `make` builds: pins complete and the same everywhere, and a clear word where it cannot be built."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_every_declared_dependency_is_pinned() -> None:
    lines = (ROOT / "envs" / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert len(pins) == len(lines) - 1, "a package is pinned twice"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [need for extra in project["optional-dependencies"].values() for need in extra]
    declared = (re.split(r"[\[<>=!~ ]", need)[0] for need in (*project["dependencies"], *extras))
    names = {re.sub(r"[-_.]+", "-", name).lower() for name in declared} - {"rankfall", "thousandfold"}
    assert len(names) > 15 and names <= set(pins)


@pytest.mark.parametrize("python", ["an old one", "none"])
def test_an_interpreter_that_will_not_do_is_one_clear_line(tmp_path: Path, python: str) -> None:
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy2(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "envs", tmp_path / "envs")
    script = tmp_path / "old-python"
    script.write_text("#!/bin/sh\nexit 1\n")
    script.chmod(0o755)
    # As a person types it, also when these tests were themselves started by make.
    typed = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    command = ["make", "run", f"PYTHON={script if python == 'an old one' else tmp_path / 'missing'}"]
    done = subprocess.run(command, cwd=tmp_path, env=typed, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    (line,) = done.stdout.splitlines()
    assert "needs Python 3.11 or newer" in line and "PYTHON=" in line
    assert not (tmp_path / ".venv").exists()
