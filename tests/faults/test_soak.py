"""Twenty edits in random order, with runs that are mostly killed somewhere: what is left is what a fresh run makes.

The seed follows from the sources: others are tried with every version, and the same ones wherever it is checked. RANKFALL_SOAK names
another; a failure says which it was.
"""

import os
import random
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from checkout import CONFIG, Checkout, changed
from samples import seed_of

from rankfall.report.compare import differences

EDITS = 20
WHOLE = 0.12  # of the runs are left alone
FILES = (
    "nets/normalisers/l2.py",
    "nets/residuals/add.py",
    "train/fit.py",
    "rank/paths/measure.py",
    "run/store/files.py",
)


class Editor:
    """Someone who cannot make up their mind."""

    def __init__(self, checkout: Checkout, dice: random.Random) -> None:
        self.checkout, self.dice = checkout, dice
        self.texts = {name: checkout.source(name).read_text() for name in FILES}
        self.seeds, self.depths, self.architectures, self.counts = {0, 1}, {2}, {"soft", "far"}, 2
        self.log: list[str] = []

    def edit(self) -> None:
        """One change, of the configuration or of a source file."""
        kind = self.dice.choice(("seed", "seed", "depth", "architecture", "option", "source", "source", "revert"))
        name = self.dice.choice(FILES)
        if kind == "seed":
            self.seeds = self.toggled(self.seeds, self.dice.randrange(4))
        elif kind == "depth":
            self.depths = self.toggled(self.depths, self.dice.choice((1, 2, 3)))
        elif kind == "architecture":
            self.architectures = self.toggled(self.architectures, self.dice.choice(("soft", "far")))
        elif kind == "option":
            self.counts = self.dice.choice((2, 3))
        elif kind == "source":
            mark = self.dice.randrange(3)  # few, so that old results are met again
            self.checkout.source(name).write_text(f"{self.texts[name]}\n_edited = {mark}\n")
        else:
            self.checkout.source(name).write_text(self.texts[name])
        self.checkout.configure(self.config())
        self.log.append(f"{kind} {name if kind in ('source', 'revert') else ''}")

    def toggled(self, there: set[Any], item: Any) -> set[Any]:
        return (there ^ {item}) or there  # never nothing

    def config(self) -> dict[str, Any]:
        grid = {"task": "sorting", "training": "short", "architecture": sorted(self.architectures)}
        grid |= {"seed": sorted(self.seeds), "depth": sorted(self.depths)}
        training = {"short": {"lr": 1.0e-3, "epochs": 60, "batch": 30}}
        measures = {"paths": {"counts": [self.counts], "repeats": 2}}
        compute = {"engine": "plain", "threads": 1, "checkpoint_seconds": 0.2, "stack": 2}
        return changed(CONFIG, grid=[grid], measures=measures, trainings=training, figures={}, compute=compute)


def disturbed(checkout: Checkout, dice: random.Random) -> None:
    """A run that ends at some moment in some way."""
    process = checkout.start("--nolock")
    try:
        process.wait(dice.uniform(2.0, 12.0))
    except subprocess.TimeoutExpired:
        number = dice.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
        os.killpg(process.pid, number)
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.slow
def test_soak(tmp_path: Path) -> None:
    seed = int(os.environ.get("RANKFALL_SOAK") or seed_of())
    dice = random.Random(seed)
    checkout = Checkout.make(tmp_path / "checkout")
    editor = Editor(checkout, dice)
    about = f"RANKFALL_SOAK={seed}"
    for _ in range(EDITS):
        editor.edit()
        if dice.random() < WHOLE:
            done = checkout.finish(checkout.start("--nolock"))
            assert done.code == 0, f"{about}\n{editor.log}\n{done.output}"
        else:
            disturbed(checkout, dice)
    checkout.run("--nolock")
    again = checkout.run("--nolock")
    assert not again.jobs, f"{about}: a second run did something\n{again.output}"
    fresh = Checkout.make(tmp_path / "fresh", editor.config())
    shutil.rmtree(fresh.folder / "src")
    shutil.copytree(checkout.folder / "src", fresh.folder / "src")
    assert fresh.run().trained == len(fresh.kept())
    for table in ("cells", "training", "paths", "datasets"):
        apart = differences(checkout.table(table), fresh.table(table))
        assert not apart, f"{about}: {table}: {apart}"
    wanted = fresh.kept()
    assert wanted <= checkout.kept()
    assert not list((checkout.results / "store").glob("damaged/*")), about
