"""Edit the sources and declared data at random, and check that keys change wherever numbers do.

    python tests/mutation/campaign.py --count 36                          # the sample of this version of the sources
    python tests/mutation/campaign.py --seed 7 --count 200 [--seconds 180]
    python tests/mutation/campaign.py --seed 7 --first 31 --count 1       # one edit of that campaign again
    RANKFALL_ENGINE=auto python tests/mutation/campaign.py --only train/machine --count 10

If numbers change under the same key, that is a hole: old results would count as new ones. None is allowed. If the key changes and the
numbers do not, work is done again for nothing, and the command reports the share. An edit that stops the pipeline proves nothing. A
process computes each edit (`units.py`), and its line is printed at once. Only files that the run opens are edited.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.extend([str(Path(__file__).parent), str(Path(__file__).parents[1])])
from mutants import Mutant, mutate
from samples import seed_of
from units import CONFIG, TEXT, write_text

ROOT = Path(__file__).parents[2]
COMPILING = 0 if CONFIG["compute"]["engine"] == "plain" else 600  # seconds more, for edits of the kernels
PATIENCE = 300  # seconds: an edit may make a loop endless


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Edit the sources at random, and check that keys change wherever numbers do."
    )
    parser.add_argument("--seed", type=int, default=seed_of(), help="default: of this version of the sources")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=1, help="number of the first edit")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no edit after so long")
    parser.add_argument("--only", default="", help="edit only files whose name, inside the package, begins so")
    args = parser.parse_args()
    ends, holes, ran, changed, remade, needless = time.monotonic() + args.seconds, 0, 0, 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT / "src", tree, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        write_text(Path(folder))
        before = compute(tree)
        assert before is not None, "the unedited sources do not run"
        stopped = [name for name, (_, digest) in before["job"].items() if digest == "broken"]
        assert not stopped, f"the unedited sources fail at {', '.join(stopped)}, where no hole could be seen"
        opened, used = ([name for name in before.pop(key) if name.startswith(args.only)] for key in ("opened", "used"))
        print(f"seed {args.seed}: {len(opened)} files to edit", flush=True)
        for number in range(args.first, args.first + args.count):
            if time.monotonic() > ends:
                break
            mutant = draw(random.Random(f"{args.seed} {number}"), tree, opened, used)
            path = tree.parent / TEXT if mutant.file == TEXT else tree / "rankfall" / mutant.file
            text = path.read_text()
            path.write_text(mutant.text)
            after = compute(tree)
            path.write_text(text)
            outcome = compare(before, after)
            print(
                f"edit {number}: {mutant.file}:{mutant.line} {mutant.what}: {outcome['text']}",
                *outcome["holes"],
                sep="\n  ",
            )
            sys.stdout.flush()
            holes += len(outcome["holes"])
            ran, changed = ran + outcome["ran"], changed + (outcome["moved"] > 0)
            remade, needless = remade + outcome["remade"], needless + outcome["needless"]
    print(f"{ran} mutants computed; {changed} changed a number; holes: {holes}")
    print(f"made again for nothing: {needless} of {remade} units whose key changed")
    return 1 if holes else 0


def compute(tree: Path) -> dict[str, Any] | None:
    """Return all units of a source tree, or None if it does not run."""
    with tempfile.TemporaryDirectory(dir=tree.parent) as work:
        shutil.copy(tree.parent / TEXT, work)
        path = os.pathsep.join([str(tree), str(ROOT / "engine" / "src")])
        environment = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, str(Path(__file__).with_name("units.py")), str(tree)]
        try:
            done = subprocess.run(
                command, cwd=work, env=environment, capture_output=True, timeout=PATIENCE + COMPILING, check=True
            )
            units: dict[str, Any] = json.loads(done.stdout)
        except (subprocess.SubprocessError, ValueError):
            return None
        return units


def compare(before: dict[str, Any], after: dict[str, Any] | None) -> dict[str, Any]:
    """Compare the units of an edit with those of the unedited sources, without units that the edit broke."""
    holes, moved, remade, needless = [], 0, 0, 0
    ran = after is not None and any(digest != "broken" for _, digest in after["job"].values())
    for kind, units in before.items() if after is not None and ran else ():
        for name, (key, digest) in units.items():
            new_key, new_digest = after[kind].get(name, (key, "broken"))
            if new_digest == "broken":
                continue
            moved += new_digest != digest
            remade += new_key != key
            needless += new_key != key and new_digest == digest
            if new_key == key and new_digest != digest:
                holes.append(f"HOLE: {kind} {name} has other numbers under the same key")
    text = f"{remade} keys changed, {moved} numbers" if ran else "did not run"
    return {"ran": ran, "moved": moved, "remade": remade, "needless": needless, "holes": holes, "text": text}


def draw(rng: random.Random, tree: Path, opened: list[str], used: list[str]) -> Mutant:
    """Return a random edit, most often of a file that some key names."""
    if rng.random() < 0.05:  # declared data
        text = (tree.parent / TEXT).read_text()
        at = rng.randrange(len(text))
        return Mutant(TEXT, text.count("\n", 0, at) + 1, "a letter", text[:at] + "z" + text[at + 1 :])
    while True:
        name = rng.choice(used if used and rng.random() < 0.8 else opened)
        mutant = mutate(name, (tree / "rankfall" / name).read_text(), rng)
        if mutant is not None:
            return mutant


if __name__ == "__main__":
    sys.exit(main())
