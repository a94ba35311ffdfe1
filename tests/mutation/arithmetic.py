"""Random edits of the arithmetic: does a test fail for each?

    python tests/mutation/arithmetic.py --count 24                        # the sample of this version of the sources
    python tests/mutation/arithmetic.py --seed 7 --count 100 [--seconds 600] [--jobs 2] [--only rank/residual]
    python tests/mutation/arithmetic.py --seed 7 --first 31 --count 1     # one edit of that campaign again

Each edit is made in a copy of the checkout, and the tests of its room run there until one fails: those that name the edited function
first. An edit that no test notices is either a missing test or the same number computed in another way; the latter are listed with the
reason in `equivalent.csv`. The campaign fails where less than 95% of the others are noticed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import csv
import gc
import importlib
import io
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.extend([str(Path(__file__).parent), str(Path(__file__).parents[1])])
from campaign import LIBRARIES, run_workers
from children import in_child
from mutants import package_files, set_field, sites
from samples import seed_of

ROOT = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.csv")
TESTS = {  # of a room, and the folders of tests that hold its numbers
    "rank": ("rank", "measures", "api"),
    "identity": ("identity", "measures", "pretrained"),
    "position": ("position", "measures"),
    "measures": ("measures", "pretrained", "rank", "identity", "position"),
}
NOTICED = 0.95  # share of edits, but for equivalent ones
PATIENCE = 900.0  # seconds for the tests of a room
REVERSED: dict[type, type] = {
    ast.Lt: ast.Gt, ast.LtE: ast.Gt, ast.Gt: ast.Lt, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
}  # fmt: skip
OTHER_NAME = {
    "amax": "amin", "amin": "amax", "max": "min", "min": "max", "mean": "sum", "sum": "mean", "sqrt": "square",
    "square": "sqrt", "minimum": "maximum", "maximum": "minimum", "log10": "log", "cumsum": "cumprod",
}  # fmt: skip


@dataclass(frozen=True)
class Edit:
    """One edit: `file` relative to the package, the function it lies in, and what was done to which statement."""

    file: str
    function: str
    line: int
    what: str
    statement: str  # as it was
    text: str  # of the whole file, edited

    @property
    def name(self) -> str:
        """The same for as long as the statement is."""
        return f"{self.file}, {self.function}: {self.what}: {self.statement}"


def draw_edit(file: str, source: str, rng: random.Random) -> Edit | None:
    """A random edit of one place of a function's arithmetic; None where there is none."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    places = [(function, *site) for function in functions for site in arithmetic_sites(function)]
    if not places:
        return None
    function, node, what, change = rng.choice(places)
    statement = statement_of(function, node)
    before = " ".join(ast.unparse(statement).split())[:160]
    change()
    return Edit(file, function.name, node.lineno, what, before, ast.unparse(ast.fix_missing_locations(tree)) + "\n")


def arithmetic_sites(function: ast.FunctionDef) -> Iterator[tuple[Any, str, Callable[[], None]]]:
    """The places of a function's body whose edit changes a number: no annotations, defaults, errors or names of columns."""
    for statement in function.body:
        if isinstance(statement, ast.FunctionDef | ast.Raise | ast.Assert):
            continue
        skipped = {id(inner) for part in ast.walk(statement) if isinstance(part, ast.Raise | ast.JoinedStr | ast.FunctionDef)
                   for inner in ast.walk(part)}  # fmt: skip
        for node, what, change in (*own_sites(statement), *sites(statement)):
            plain = isinstance(node, ast.Constant | ast.Compare)  # edited below, by more than a test's tolerance
            if id(node) not in skipped and not (plain and what.endswith(("a little", *REVERSES))):
                yield node, what, change


REVERSES = tuple(f"-> {kind.__name__}" for kind in (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq))


def own_sites(tree: ast.AST) -> Iterator[tuple[Any, str, Callable[[], None]]]:
    """Numbers changed by more than any tolerance, comparisons turned round, and reductions exchanged."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            yield node, f"{node.value} is {node.value + 1}", lambda n=node: set_field(n, "value", n.value + 1)
        elif isinstance(node, ast.Constant) and type(node.value) is float and node.value:
            other = node.value * (1e6 if abs(node.value) < 1e-3 else 0.9)
            yield node, f"{node.value} is {other:g}", lambda n=node, o=other: set_field(n, "value", o)
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in REVERSED:
            other = REVERSED[type(node.ops[0])]
            done = f"{type(node.ops[0]).__name__} turned round"
            yield node, done, lambda n=node, o=other: n.ops.__setitem__(0, o())
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in OTHER_NAME:
            other = OTHER_NAME[node.func.attr]
            yield node, f"{node.func.attr} is {other}", lambda n=node, o=other: set_field(n.func, "attr", o)


def statement_of(function: ast.FunctionDef, node: ast.AST) -> ast.stmt:
    """The innermost statement of a function that holds a node."""
    holding = [
        part
        for part in ast.walk(function)
        if isinstance(part, ast.stmt) and any(inner is node for inner in ast.walk(part))
    ]
    return min(holding, key=lambda part: sum(1 for _ in ast.walk(part)))


def find_tests(edit: Edit, tests: Path) -> list[str]:
    """The files of tests of an edit's room, those that name its function or file most often first."""
    room, stem = edit.file.partition("/")[0], Path(edit.file).stem
    files = [file for folder in TESTS[room] for file in sorted((tests / folder).glob("test_*.py"))]
    texts = {file: file.read_text() for file in files}
    return [
        str(file)
        for file in sorted(
            files, key=lambda file: (-texts[file].count(edit.function), stem not in file.stem, -texts[file].count(stem))
        )
    ]


def run_tests(tree: Path, files: list[str]) -> list[str] | None:
    """The first test that fails in a copy of the checkout, with the seconds it took to find; [] if none does, None without an end."""

    def child() -> list[str]:
        os.chdir(tree)
        os.environ["PYTHONPATH"] = str(tree / "src")
        import pytest

        failed: list[str] = []

        class Listener:
            def pytest_runtest_logreport(self, report: Any) -> None:
                if report.failed:
                    failed.append(report.nodeid)

            def pytest_collectreport(self, report: Any) -> None:
                if report.failed:
                    failed.append(f"{report.nodeid}: cannot be imported")

        options = [
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "--rootdir",
            str(tree),
            "-c",
            "pyproject.toml",
        ]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            pytest.main([*options, *files], plugins=[Listener()])
        return failed

    found: list[str] | None = in_child(tree / "src", child, PATIENCE)
    return found


def campaign(seed: int, numbers: range, seconds: float, only: str, jobs: int) -> list[dict[str, Any]]:
    """What became of each edit."""
    ends = time.monotonic() + seconds
    found = []
    with tempfile.TemporaryDirectory(prefix="arithmetic-") as folder:
        trees = [copy_checkout(Path(folder) / str(job)) for job in range(jobs)]
        for library in (*LIBRARIES, "pytest", "hypothesis", "mpmath", "transformers"):
            with contextlib.suppress(ImportError):
                importlib.import_module(library)
        gc.collect()
        gc.freeze()
        names = [name for name in package_files(trees[0] / "src" / "rankfall") if name.partition("/")[0] in TESTS]
        files = [name for name in names if name.startswith(only)]
        assert files, f"there is no file of {', '.join(TESTS)} whose name begins with {only!r}"
        works = [make_worker(tree, files, seed, numbers[at::jobs], ends) for at, tree in enumerate(trees)]
        with contextlib.suppress(KeyboardInterrupt), contextlib.closing(run_workers(works)) as lines:
            for line in lines:
                print(
                    f"seed {seed} edit {line['number']}: {line['seconds']:.0f} s, {line['end']}: line {line['line']} of {line['edit']}",
                    flush=True,
                )
                found.append(line)
    return found


def copy_checkout(folder: Path) -> Path:
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".*", "__pycache__", "results", "*.egg-info"))
    return folder


def make_worker(
    tree: Path, files: list[str], seed: int, numbers: range, ends: float
) -> Callable[[], Iterator[dict[str, Any]]]:
    """The edits of these numbers one after the other, in a tree of their own."""
    known = read_equivalent()

    def work() -> Iterator[dict[str, Any]]:
        for number in numbers:
            began = time.monotonic()
            if began > ends:
                break
            rng, edit = random.Random(f"{seed} {number}"), None
            while edit is None:
                file = rng.choice(files)
                edit = draw_edit(file, (tree / "src" / "rankfall" / file).read_text(), rng)
            if edit.name in known:
                end = "equivalent"
            else:
                path = tree / "src" / "rankfall" / edit.file
                before = path.read_text()
                path.write_text(edit.text)
                failed = run_tests(tree, find_tests(edit, tree / "tests"))
                path.write_text(before)
                end = "no end" if failed is None else f"noticed by {failed[0]}" if failed else "LIVES"
            yield {
                "number": number,
                "edit": edit.name,
                "line": edit.line,
                "end": end,
                "seconds": time.monotonic() - began,
            }

    return work


def read_equivalent() -> dict[str, str]:
    """Edits that change no number, and why."""
    with EQUIVALENT.open(newline="") as file:
        return {row["edit"]: row["reason"] for row in csv.DictReader(file)}


def summarise(found: list[dict[str, Any]]) -> tuple[str, bool]:
    """The findings for a person, and whether they are good enough."""
    same = sum(line["end"] == "equivalent" for line in found)
    lives = [line for line in found if line["end"] == "LIVES"]
    asked = len(found) - same
    share = 1 - len(lives) / asked if asked else 1.0
    lines = [
        f"{len(found)} edits, {same} equivalent; of the other {asked} tests noticed {asked - len(lives)}, {share:.0%}"
    ]
    lines += [f"  edit {line['number']} lives: line {line['line']} of {line['edit']}" for line in lives]
    return "\n".join(lines), share >= NOTICED


def main() -> int:
    parser = argparse.ArgumentParser(description="Does a test fail for each edit of the arithmetic?")
    parser.add_argument("--seed", type=int, default=seed_of(), help="default: of this version of the sources")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument(
        "--first", type=int, default=1, help="number of the first edit; the seed and it say which edit it is"
    )
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no edit after so long")
    parser.add_argument("--only", default="", help="edit only files whose name, inside the package, begins so")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="edits tested at the same time")
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    text, good = summarise(
        campaign(args.seed, range(args.first, args.first + args.count), args.seconds, args.only, args.jobs)
    )
    print(text, flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
