"""Random edits of the arithmetic: does a test fail for each?

    python tests/mutation/arithmetic.py --count 24                        # the sample of this version of the sources
    python tests/mutation/arithmetic.py --seed 7 --count 100 [--seconds 600] [--jobs 2] [--only rank/residual]
    python tests/mutation/arithmetic.py --seed 7 --first 31 --count 1     # one edit of that campaign again

Each edit is made in a copy of the checkout, and the tests of its room run there until one fails: those that name the edited function
first. An edit that no test notices is either a missing test or the same number computed in another way; the latter are listed with the
reason in `equivalent.csv`. A campaign of a hundred edits or more fails where less than 95% of the others are noticed. Few edits say less:
of 30 a suite that notices 95% misses three or more one time in five. So what fails a sample is a number of survivors that a suite which
notices 90% would reach less than one time in twenty: seven of 30.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import gc
import importlib
import io
import math
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.extend([str(Path(__file__).parent), str(Path(__file__).parents[1])])
from campaign import LIBRARIES, run_workers
from children import in_child
from edits import Edit, draw_edit
from mutants import package_files
from samples import seed_of

ROOT = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.csv")
TESTS = {  # of a room, and the folders of tests that hold its numbers
    "rank": ("rank", "measure", "api"),
    "identity": ("identity", "measure", "models"),
    "position": ("position", "measure"),
    "use": ("use", "measure"),
    "overview": ("overview", "measure"),
    "measure": ("measure", "models", "rank", "identity", "position"),
}
# Of a quantity, but none of its arithmetic; tests/report and tests/overview ask about them.
SHOWN = ("shown.py", "figure.py", "columns.py", "chart.py", "headline.py", "sentence.py", "claim.py", "published.py")
NOTICED = 0.95  # share of edits, but for equivalent ones
FEW = 100  # edits, of which a share says little
DOUBTFUL, CHANCE = (
    0.90,
    0.05,
)  # a sample fails where a suite that notices so many would do as badly less often than that
PATIENCE = 900.0  # seconds for the tests of a room


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
    """The first test that fails in a copy of the checkout; [] if none does, None without an end."""
    order = {file: number for number, file in enumerate(files)}

    def child() -> list[str]:
        os.chdir(tree)
        os.environ["PYTHONPATH"] = str(tree / "src")
        import pytest

        failed: list[str] = []

        class Listener:
            @pytest.hookimpl(trylast=True)  # behind that of the tests themselves, which begin with the longest
            def pytest_collection_modifyitems(self, items: list[Any]) -> None:
                items.sort(key=lambda item: order[str(item.path)])

            def pytest_runtest_logreport(self, report: Any) -> None:
                if report.failed:
                    failed.append(report.nodeid)

            def pytest_collectreport(self, report: Any) -> None:
                if report.failed:
                    failed.append(f"{report.nodeid}: cannot be imported")

        options = ["-xq", "-pno:cacheprovider", "-pno:xdist", f"--rootdir={tree}", "-cpyproject.toml", "-mnot slow"]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            code = pytest.main([*options, *files], plugins=[Listener()])
        if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and not failed:
            raise RuntimeError(f"pytest ended with {code}")
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
        names = [name for name in package_files(trees[0] / "src" / "rankfall") if is_arithmetic(name)]
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


def is_arithmetic(file: str) -> bool:
    """Whether numbers of a study are computed in a file of the package."""
    return file.partition("/")[0] in TESTS and not file.endswith(SHOWN)


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
    if not found:
        return "no edit was begun in time: this says nothing", False
    same = sum(line["end"] == "equivalent" for line in found)
    lives = [line for line in found if line["end"] == "LIVES"]
    asked = len(found) - same
    share = 1 - len(lives) / asked if asked else 1.0
    lines = [
        f"{len(found)} edits, {same} equivalent; of the other {asked} tests noticed {asked - len(lives)}, {share:.0%}"
    ]
    lines += [f"  edit {line['number']} lives: line {line['line']} of {line['edit']}" for line in lives]
    good = share >= NOTICED if asked >= FEW else chance_of(len(lives), asked, DOUBTFUL) >= CHANCE
    return "\n".join(lines), good


def chance_of(lives: int, asked: int, noticed: float) -> float:
    """How often at least so many edits live where each is noticed so often."""
    return sum(math.comb(asked, k) * (1 - noticed) ** k * noticed ** (asked - k) for k in range(lives, asked + 1))


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
