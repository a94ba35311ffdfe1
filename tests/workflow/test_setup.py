"""The environment that `make` builds: pins complete and the same everywhere, and a clear word where it cannot be built."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def pins() -> dict[str, str]:
    lines = (ROOT / "envs" / "constraints.txt").read_text().splitlines()
    found = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert len(found) == len(lines) - 1
    return found


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_declared_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = [
        *project["dependencies"],
        *(need for extra in project["optional-dependencies"].values() for need in extra),
    ]
    names = {canonical(re.split(r"[\[<>=!~ ]", need)[0]) for need in declared}
    names -= {"rankfall", "thousandfold"}  # of this repository
    assert len(names) > 15
    assert names <= set(pins())


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What `make setup` looks at, and nothing else."""
    shutil.copy2(ROOT / "Makefile", tmp_path)
    shutil.copy2(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "envs", tmp_path / "envs")
    return tmp_path


def make(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    # As a person types it, also when these tests were themselves started by make.
    typed = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return subprocess.run(["make", *arguments], cwd=folder, env=typed, capture_output=True, text=True, check=False)


def interpreter(folder: Path, body: str) -> Path:
    script = folder / "fake-python"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    return script


@pytest.mark.parametrize("python", ["an old one", "none"])
def test_an_interpreter_that_will_not_do_is_one_clear_line(checkout: Path, python: str) -> None:
    path = interpreter(checkout, "exit 1") if python == "an old one" else checkout / "missing"
    done = make(checkout, "run", f"PYTHON={path}")
    assert done.returncode != 0
    assert len(done.stdout.splitlines()) == 1
    assert "needs Python 3.11 or newer" in done.stdout
    assert "PYTHON=" in done.stdout
    assert not (checkout / ".venv").exists()
