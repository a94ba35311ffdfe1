"""Random edits of the sources and of declared data, each computed afresh: is a key the claim that it says it is?

    python tests/mutation/campaign.py --seed 7 --count 200 [--seconds 180]
    RANKFALL_ENGINE=auto python tests/mutation/campaign.py --only train/fused --count 10

Where numbers change and the key does not, that is a hole: stale results would pass for fresh. None is allowed. Where the key changes and
the numbers do not, work is done again for nothing: the share is reported, with the files that cause most of it. An edit that stops the
pipeline proves nothing and is counted apart.

A mutant is computed in a child forked from a process that has imported torch and the other libraries but nothing of Rankfall, so that it
loads its own sources and nothing else, at a fraction of a second instead of three.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from mutants import Mutant, mutate, package_files
from units import CONFIG, TEXT, survey, write_text

ROOT = Path(__file__).parents[2]
LIBRARIES = ("numpy", "pandas", "pyarrow.parquet", "scipy.stats", "yaml", "pydantic", "torch", "safetensors.torch")
DRAWING = ("matplotlib.figure", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_pdf")
PATIENCE = 120  # seconds for one mutant: an edit may make a loop endless
Units = dict[str, dict[str, list[str]]]


@dataclass
class Findings:
    """What all mutants of a campaign came to."""

    holes: list[str] = field(default_factory=list)
    broken: int = 0  # no unit was computed to the end
    tried: Counter[str] = field(default_factory=Counter)  # room -> mutants that ran
    changed: int = 0  # mutants that changed a number
    imprecise: Counter[str] = field(default_factory=Counter)  # file -> units made again for nothing
    keys_changed: int = 0  # units whose key changed
    for_nothing: int = 0  # of these, units whose numbers did not

    def add(self, mutant: Mutant, before: Units, after: Units | None) -> None:
        """Compare one mutant's units with those of the sources as they are."""
        if after is None or all(digest == "broken" for _, digest in after["job"].values()):
            self.broken += 1
            return
        self.tried[mutant.file.partition("/")[0]] += 1
        moved = False
        for kind, units in before.items():
            for name, (key, digest) in units.items():
                new_key, new_digest = after[kind].get(name, (key, "broken"))
                if new_digest == "broken":
                    continue
                moved |= new_digest != digest
                if new_key == key and new_digest != digest:
                    where = f"{mutant.file}:{mutant.line} {mutant.what}"
                    self.holes.append(f"{where}: {kind} {name} has other numbers under the same key")
                if new_key != key:
                    self.keys_changed += 1
                    if new_digest == digest:
                        self.for_nothing += 1
                        self.imprecise[mutant.file] += 1
        self.changed += moved

    def lines(self) -> Iterator[str]:
        """The findings for a person."""
        yield f"{sum(self.tried.values())} mutants computed, {self.broken} did not run; {self.changed} changed a number"
        yield f"holes: {len(self.holes)}"
        yield from (f"  {hole}" for hole in self.holes)
        share = self.for_nothing / self.keys_changed if self.keys_changed else 0.0
        yield f"made again for nothing: {self.for_nothing} of {self.keys_changed} units whose key changed ({share:.0%})"
        yield from (f"  {count:5d} {file}" for file, count in self.imprecise.most_common(10))


def campaign(seed: int, count: int, seconds: float = float("inf"), only: str = "") -> Findings:
    """`count` mutants, or as many as fit into `seconds`; `only` takes files whose name begins so."""
    for library in (*LIBRARIES, *DRAWING):
        importlib.import_module(library)
    rng, began, found = random.Random(seed), time.monotonic(), Findings()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT / "src", tree, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        write_text(Path(folder))
        before = computed(tree, Path(folder))
        assert before is not None, "the sources as they are do not run"
        stopped = [name for name, (_, digest) in before["job"].items() if digest == "broken"]
        assert not stopped, f"the sources as they are fail at {', '.join(stopped)}: what never runs shows no hole"
        used = files_used(tree, Path(folder))
        files = [name for name in package_files(tree / "rankfall") if name.startswith(only)]
        again = computed(tree, Path(folder))
        assert again == before, "two runs of the same sources differ: nothing can be said of mutants"
        for number in range(count):
            if time.monotonic() - began > seconds:
                break
            mutant = _draw(rng, tree, Path(folder), files, used)
            if mutant is None:
                continue
            with _edited(mutant, tree, Path(folder)):
                found.add(mutant, before, computed(tree, Path(folder)))
            print(f"{number + 1}: {mutant.file}:{mutant.line} {mutant.what}", flush=True)
    return found


def files_used(tree: Path, folder: Path) -> set[str]:
    """Files that some job of the run depends on: most edits are made there, where they can matter."""

    def child() -> list[str]:
        from rankfall.plan import make_plan

        os.chdir(folder)
        plan = make_plan(CONFIG)
        codes = [cell.code for cell in plan.cells] + [measure.code for measure in plan.measures.values()]
        codes += [figure.code for figure in plan.figures.values()]
        return [name.removeprefix("rankfall/") for code in codes for name in code if name.startswith("rankfall/")]

    return set(_in_child(tree, child, PATIENCE) or ())


def _draw(rng: random.Random, tree: Path, folder: Path, files: list[str], used: set[str]) -> Mutant | None:
    if rng.random() < 0.05:  # declared data
        text = (folder / TEXT).read_text()
        at = rng.randrange(len(text))
        return Mutant(TEXT, text.count("\n", 0, at) + 1, "a letter", text[:at] + "z" + text[at + 1 :])
    near = [name for name in files if name in used]
    name = rng.choice(near if near and rng.random() < 0.8 else files)
    return mutate(name, (tree / "rankfall" / name).read_text(), rng)


class _edited:
    """Within, the mutant stands in the tree."""

    def __init__(self, mutant: Mutant, tree: Path, folder: Path) -> None:
        self.path = folder / TEXT if mutant.file == TEXT else tree / "rankfall" / mutant.file
        self.text = mutant.text

    def __enter__(self) -> None:
        self.before = self.path.read_text()
        self.path.write_text(self.text)

    def __exit__(self, *_: object) -> None:
        self.path.write_text(self.before)


def computed(tree: Path, folder: Path) -> Units | None:
    """All units of a source tree, or None where it does not run at all."""
    work = Path(tempfile.mkdtemp(dir=folder))
    shutil.copy(folder / TEXT, work)

    def child() -> Units:
        os.chdir(work)
        return survey(work)

    found = _in_child(tree, child, PATIENCE)
    shutil.rmtree(work)
    return found


def _in_child(tree: Path, work: Any, patience: float) -> Any:
    """What `work` returns in a fork that sees the tree's package; None where it raises or does not end in time."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.setsid()
        code = 1
        try:
            sys.dont_write_bytecode = True
            sys.path[:] = [str(tree), *(p for p in sys.path if not p.rstrip("/").endswith("src"))]
            answer = json.dumps(work()).encode()
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(answer)
            code = 0
        except BaseException:
            if os.environ.get("MUTANTS_SAY"):
                traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writing)
    return _answer(child, reading, patience)


def _answer(child: int, reading: int, patience: float) -> Any:
    import select
    import signal

    parts, ends = [], time.monotonic() + patience
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, ends - time.monotonic()))
        if not ready:
            os.killpg(child, signal.SIGKILL)
            break
        part = os.read(reading, 1 << 16)
        if not part:
            break
        parts.append(part)
    os.close(reading)
    os.waitpid(child, 0)
    try:
        return json.loads(b"".join(parts))
    except ValueError:
        return None


def main() -> int:
    parser = argparse.ArgumentParser(description="Are keys the claims that they say they are? Tried by random edits.")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--only", default="", help="edit only files whose name, inside the package, begins so")
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    found = campaign(args.seed, args.count, args.seconds, args.only)
    print("\n".join(found.lines()), flush=True)
    return 1 if found.holes else 0


if __name__ == "__main__":
    sys.exit(main())
