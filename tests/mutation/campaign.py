"""Random edits of the sources and of declared data, each computed afresh: is a key the claim that it says it is?

    python tests/mutation/campaign.py --count 36                          # the sample of this version of the sources
    python tests/mutation/campaign.py --seed 7 --count 200 [--seconds 180] [--jobs 2]
    python tests/mutation/campaign.py --seed 7 --first 31 --count 1       # one edit of that campaign again
    RANKFALL_ENGINE=auto python tests/mutation/campaign.py --only train/machine --count 10

Where numbers change and the key does not, that is a hole: stale results would pass for fresh. None is allowed. Where the key changes and
the numbers do not, work is done again for nothing: the share is reported, with the files that cause most of it. An edit that stops the
pipeline proves nothing and is counted apart. Every edit has its line as soon as it is computed; a campaign that is broken off (Ctrl-C,
SIGTERM) ends with the findings so far.

A mutant is computed in a child forked from a process that has imported all that the sources as they are import, but nothing of Rankfall,
so that it loads its own sources and nothing else. What it is compared with is computed in the same way. Files that the run does not
open are not edited: nothing could follow.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.extend([str(Path(__file__).parent), str(Path(__file__).parents[1])])
from children import in_child, recorded
from findings import Findings, Units
from mutants import Mutant, mutate, package_files
from samples import seed_of
from units import CONFIG, TEXT, survey, write_text

ROOT = Path(__file__).parents[2]
LIBRARIES = ("numpy", "pandas", "pyarrow.parquet", "scipy.stats", "yaml", "pydantic", "torch", "safetensors.torch")
DRAWING = ("matplotlib.figure", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_pdf")
LONGEST = 300  # seconds for the sources as they are
COMPILING = (
    0 if CONFIG["compute"]["engine"] == "plain" else 600
)  # seconds more, where an edit has the kernels compiled again
TIMES = 5  # an edit may make a loop endless: it has so many times as long as the sources as they are


@dataclass(frozen=True)
class Ready:
    """What every edit of a campaign is made on and compared with."""

    files: list[str]  # that the run opens
    used: set[str]  # that some job depends on: most edits are made there, where they can matter
    before: Units
    seconds: float  # that the sources as they are take

    @property
    def patience(self) -> float:
        return max(60.0, TIMES * self.seconds) + COMPILING


def campaign(seed: int, numbers: range, seconds: float = float("inf"), only: str = "", jobs: int = 1) -> Findings:
    """The mutants of these numbers, or as many as fit into `seconds`; `only` takes files whose name begins so."""
    found, ends = Findings(), time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        trees = [_checkout(Path(folder) / str(job)) for job in range(jobs)]
        ready = prepare(trees[0], only)
        print(f"{len(ready.files)} files to edit, {ready.seconds:.0f} s for the sources as they are", flush=True)
        works = [_worker(tree, ready, seed, numbers[at::jobs], ends) for at, tree in enumerate(trees)]
        with contextlib.suppress(KeyboardInterrupt), contextlib.closing(run_workers(works)) as lines:
            for line in lines:
                mutant = Mutant(**line["mutant"], text="")
                said = found.add(mutant, ready.before, line["units"])
                place = f"seed {seed} edit {line['number']}: {mutant.file}:{mutant.line} {mutant.what}"
                print(f"{place}: {line['seconds']:.1f} s, {said}", flush=True)
    return found


def prepare(tree: Path, only: str) -> Ready:
    """Compute the sources as they are, import here what they imported, and compute them again."""
    for library in (*LIBRARIES, *DRAWING):
        importlib.import_module(library)
    first = computed(tree, LONGEST, recorded)
    assert first is not None, "the sources as they are do not run"
    for module in first["modules"]:
        if module not in sys.modules:
            with contextlib.suppress(Exception):  # what cannot be imported by itself is imported by each child
                importlib.import_module(module)
    gc.collect()
    gc.freeze()  # no child goes through the libraries' objects again
    began = time.monotonic()
    before = computed(tree, LONGEST)
    assert before == first["result"], "two runs of the same sources differ: nothing can be said of mutants"
    stopped = [name for name, (_, digest) in before["job"].items() if digest == "broken"]
    assert not stopped, f"the sources as they are fail at {', '.join(stopped)}: what never runs shows no hole"
    opened = {name.removeprefix("rankfall/") for name in first["opened"]}
    files = [name for name in package_files(tree / "rankfall") if name in opened and name.startswith(only)]
    assert files, f"the run opens no file whose name begins with {only!r}"
    return Ready(files, files_used(tree), before, time.monotonic() - began)


def files_used(tree: Path) -> set[str]:
    """Files that some job of the run depends on."""

    def child() -> list[str]:
        from rankfall.run.plan import make_plan

        os.chdir(tree.parent)
        plan = make_plan(CONFIG)
        codes = [cell.code for cell in plan.cells] + [measure.code for measure in plan.measures.values()]
        codes += [figure.code for figure in plan.figures.values()]
        return [name.removeprefix("rankfall/") for code in codes for name in code if name.startswith("rankfall/")]

    return set(in_child(tree, child, LONGEST) or ())


def computed(tree: Path, patience: float, watched: Callable[..., Any] | None = None) -> Any:
    """All units of a source tree, or None where it does not run at all."""
    work = Path(tempfile.mkdtemp(dir=tree.parent))
    shutil.copy(tree.parent / TEXT, work)

    def child() -> Units:
        os.chdir(work)
        return survey(work)

    try:
        return in_child(tree, watched(tree, child) if watched else child, patience)
    finally:
        shutil.rmtree(work)


def _checkout(folder: Path) -> Path:
    shutil.copytree(ROOT / "src", folder / "tree", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    write_text(folder)
    return folder / "tree"


def _worker(tree: Path, ready: Ready, seed: int, numbers: range, ends: float) -> Callable[[], Iterator[dict[str, Any]]]:
    """The mutants of these numbers one after the other, in a tree of their own."""

    def work() -> Iterator[dict[str, Any]]:
        for number in numbers:
            began = time.monotonic()
            if began > ends:
                break
            mutant = draw(random.Random(f"{seed} {number}"), tree, ready.files, ready.used)
            with _edited(mutant, tree):
                units = computed(tree, ready.patience)
            about = {"file": mutant.file, "line": mutant.line, "what": mutant.what}
            yield {"number": number, "mutant": about, "units": units, "seconds": time.monotonic() - began}

    return work


def run_workers(works: list[Callable[[], Iterator[dict[str, Any]]]]) -> Iterator[dict[str, Any]]:
    """What all workers yield, as it comes; each is a process."""
    workers: dict[int, int] = {}  # pipe -> process
    for work in works:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                with os.fdopen(writing, "w") as pipe:
                    for line in work():
                        print(json.dumps(line), file=pipe, flush=True)
            finally:
                os._exit(0)
        os.close(writing)
        workers[reading] = child
    rests = dict.fromkeys(workers, b"")
    try:
        while rests:
            for reading in select.select([*rests], [], [])[0]:
                part = os.read(reading, 1 << 16)
                *whole, rests[reading] = (rests[reading] + part).split(b"\n")
                yield from map(json.loads, whole)
                if not part:
                    del rests[reading]
    finally:
        for reading, child in workers.items():
            os.close(reading)
            if reading in rests:
                os.kill(child, signal.SIGTERM)
            os.waitpid(child, 0)


def draw(rng: random.Random, tree: Path, files: list[str], used: set[str]) -> Mutant:
    """One edit, most often of a file that some job depends on; of files with nothing to edit another is drawn."""
    if rng.random() < 0.05:  # declared data
        text = (tree.parent / TEXT).read_text()
        at = rng.randrange(len(text))
        return Mutant(TEXT, text.count("\n", 0, at) + 1, "a letter", text[:at] + "z" + text[at + 1 :])
    near = [name for name in files if name in used]
    while True:
        name = rng.choice(near if near and rng.random() < 0.8 else files)
        mutant = mutate(name, (tree / "rankfall" / name).read_text(), rng)
        if mutant is not None:
            return mutant


class _edited:
    """Within, the mutant stands in the tree."""

    def __init__(self, mutant: Mutant, tree: Path) -> None:
        self.path = tree.parent / TEXT if mutant.file == TEXT else tree / "rankfall" / mutant.file
        self.text = mutant.text

    def __enter__(self) -> None:
        self.before = self.path.read_text()
        self.path.write_text(self.text)

    def __exit__(self, *_: object) -> None:
        self.path.write_text(self.before)


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    parser = argparse.ArgumentParser(description="Are keys the claims that they say they are? Tried by random edits.")
    parser.add_argument("--seed", type=int, default=seed_of(), help="default: of this version of the sources")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument(
        "--first", type=int, default=1, help="number of the first edit; the seed and it say which edit it is"
    )
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no edit after so long")
    parser.add_argument("--only", default="", help="edit only files whose name, inside the package, begins so")
    parser.add_argument(
        "--jobs", type=int, default=len(os.sched_getaffinity(0)), help="edits computed at the same time"
    )
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, _stop)
    print(f"seed {args.seed}", flush=True)
    found = campaign(args.seed, range(args.first, args.first + args.count), args.seconds, args.only, args.jobs)
    print("\n".join(found.lines()), flush=True)
    return 1 if found.holes else 0


if __name__ == "__main__":
    sys.exit(main())
