"""Which tests reach which functions, in seconds of each: the tests that can notice an edit, the quickest first.

Tests that start processes reach what those compute, which is not seen here: they count as reaching everything. What is kept in memory
from one test to the next is seen with each: functions that keep their results (`lru_cache`) forget them before every test, and what
makes a fixture that several tests share counts for all of them.

A survey is kept by content: of each file of tests, for as long as it, the modules that it loads and the names of the package's files are
the same. What plans and runs is left out, since it computes no number, and so is what tests read otherwise, such as a file of bands.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import io
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from children import in_child

EVERYTHING = "everything"
AROUND = ("src/rankfall/run/", "src/rankfall/commands/")  # the arithmetic
STARTS = ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec")


class Reach:
    """A plugin of pytest that writes down the functions of some rooms that each test calls, as `rank/bounds.py:12`."""

    def __init__(self, package: Path) -> None:
        self.prefix = f"{package}{os.sep}"
        self.tree = f"{package.parents[1]}{os.sep}"
        self.fixtures: dict[Any, set[CodeType]] = {}  # of those that were made: what making them called
        self.tests: dict[str, dict[str, Any]] = {}
        self.failed: list[str] = []
        self.codes: set[CodeType] = set()
        self.started = False
        sys.addaudithook(self.hear)

    def hear(self, event: str, args: object) -> None:
        self.started = self.started or event in STARTS

    def see(self, frame: FrameType, event: str, argument: object) -> None:
        self.codes.add(frame.f_code)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        forget_results(self.tree)
        self.codes, self.started, began = set(), False, time.monotonic()
        threading.settrace(self.see)
        sys.settrace(self.see)
        yield
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        info = getattr(item, "_fixtureinfo", None)
        made = (fixture for fixtures in (info.name2fixturedefs.values() if info else ()) for fixture in fixtures)
        self.codes = self.codes.union(*(self.fixtures.get(fixture, ()) for fixture in made))
        functions = {
            f"{code.co_filename.removeprefix(self.prefix)}:{code.co_firstlineno}"
            for code in self.codes
            if code.co_filename.startswith(self.prefix)
        }
        self.tests[item.nodeid] = {
            "seconds": time.monotonic() - began,
            "functions": sorted(functions | ({EVERYTHING} if self.started else set())),
        }

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        before, self.codes = self.codes, set()
        yield
        self.fixtures[fixturedef] = self.codes
        self.codes = before | self.codes


def forget_results(tree: str) -> None:
    """Empty the caches of functions whose sources lie in a folder, so that their next call computes."""
    for kept in gc.get_objects():
        if type(kept) is functools._lru_cache_wrapper:
            code = getattr(kept.__wrapped__, "__code__", None)
            if code is not None and code.co_filename.startswith(tree):
                kept.cache_clear()


def survey(tree: Path, folders: list[str], path: Path, patience: float) -> dict[str, dict[str, Any]]:
    """Seconds and functions of each test in these folders; `path` keeps them, and only files of tests of which something changed run."""
    kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    found: dict[str, dict[str, Any]] = {}
    for file in (file for folder in folders for file in sorted((tree / "tests" / folder).glob("test_*.py"))):
        name = file.relative_to(tree).as_posix()
        if name not in kept or kept[name]["digest"] != digest_of(tree, kept[name]["modules"]):
            seen = in_child(tree / "src", lambda name=name: survey_file(tree, name), patience)
            if seen is None or seen["failed"]:
                raise RuntimeError(
                    f"{name} fails without an edit: {seen['failed'] if seen else 'it raised, or did not end'}"
                )
            kept[name] = {"digest": digest_of(tree, seen["modules"]), **seen}
            path.write_text(json.dumps(kept))
        found |= kept[name]["tests"]
    return found


def digest_of(tree: Path, modules: list[str]) -> str:
    """Of the contents of these files, and of the names of all that the package has: tests find components by their names."""
    digest = hashlib.sha256()
    there = sorted(path.relative_to(tree).as_posix() for path in (tree / "src").rglob("*.py"))
    digest.update("\n".join(name for name in there if not name.startswith(AROUND)).encode())
    for name in (name for name in modules if not name.startswith(AROUND)):
        content = (tree / name).read_bytes() if (tree / name).exists() else b""
        digest.update(name.encode() + hashlib.sha256(content).digest())
    return digest.hexdigest()


def survey_file(tree: Path, name: str) -> dict[str, Any]:
    """Seconds and functions of each test of a file or folder, the modules that were loaded, and the tests that failed; to be called in a
    process of its own.
    """
    os.chdir(tree)
    os.environ["PYTHONPATH"] = str(tree / "src")
    plugin = Reach(tree / "src" / "rankfall")
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(tree), "-c", "pyproject.toml"]
    options += ["-m", "not slow"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        pytest.main([*options, name], plugins=[plugin])
    paths = {name, *(file.removeprefix(plugin.tree) for file in module_files() if file.startswith(plugin.tree))}
    return {
        "tests": plugin.tests,
        "modules": sorted(path for path in paths if path.endswith(".py")),
        "failed": plugin.failed,
    }


def module_files() -> list[str]:
    """The files of all modules that this process has loaded."""
    return [file for module in [*sys.modules.values()] if (file := getattr(module, "__file__", None))]


def reaching(tests: dict[str, dict[str, Any]], functions: set[str], room: set[str]) -> list[str]:
    """The tests of a room's folders that call one of these functions, the quickest first."""
    functions = functions | {EVERYTHING}
    found = [
        name for name, test in tests.items() if name.split("/")[1] in room and functions.intersection(test["functions"])
    ]
    return sorted(found, key=lambda name: tests[name]["seconds"])
