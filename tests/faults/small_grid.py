"""What the campaign runs: a checkout with components of its own, three configurations, and three files with two texts each.

A run from nothing takes three seconds and makes four tables and a figure. Every number of the tables follows from the
configuration, from which of its two texts each file has, and from nothing else.
"""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from checkout import ROOT

MIX = '''"""A normaliser of one's own."""

from torch import Tensor

SHARPNESS = 1.0


def sharp(logits: Tensor) -> Tensor:
    return (SHARPNESS * logits).softmax(-1)
'''

LOOK = '''"""A measure and a figure of one's own."""

from matplotlib.figure import Figure
from rankfall.report.style import Picture

TABLE = "paths"
NEEDS = "cells"
TABLES = ["cells", "paths"]
SCALE = 1.0


def look(context, *, power: int = 1):
    """One number that depends on every weight and on all test data."""
    sums = (context.network(context.data.test.inputs).double() ** power).abs().flatten(1).mean(1)
    return [{"member": k, "kind": "whole", "accuracy": float(SCALE * sums[k])} for k in range(len(sums))]


def drawing(read):
    frame = read("paths").merge(read("cells")[["key", "test_loss"]], on="key")
    figure = Figure(figsize=(2, 2))
    figure.subplots().plot(frame["test_loss"], frame["accuracy"], "o")
    return Picture(figure, f"{len(frame)} cells.")
'''

L2 = "src/rankfall/nets/normalisers/l2.py"
EDITS = {  # file -> (what stands there, what stands there after an edit)
    "lab_mix.py": ("SHARPNESS = 1.0", "SHARPNESS = 2.0"),
    "lab_look.py": ("SCALE = 1.0", "SCALE = 3.0"),
    L2: ("return weights / weights.norm", "return weights * weights.norm"),
}
Texts = tuple[int, ...]  # 0 or 1 a file, in the order of EDITS


def _config(name: str, lr: float, architectures: list[str], seeds: list[int], power: int) -> dict[str, Any]:
    return {
        "name": name,
        "page": False,
        "results": "results",
        "tasks": {"sorting": {"train": 40, "test": 10, "length": 6, "symbols": 5}},
        "architectures": {
            "own": {"normaliser": "lab_mix:sharp", "mlp": "none", "heads": 2, "width": 8, "depth": 1},
            "far": {"normaliser": "l2", "mlp": "gelu", "heads": 2, "width": 8, "depth": 1},
        },
        "trainings": {"short": {"lr": lr, "epochs": 12, "batch": 10}},
        "grid": [{"task": "sorting", "architecture": architectures, "training": "short", "seed": seeds}],
        "measures": {"look": {"measure": "lab_look:look", "power": power}},
        "figures": {"drawing": {"figure": "lab_look:drawing"}},
        "compute": {"engine": "plain", "threads": 1, "shard_minutes": 1e-6, "checkpoint_seconds": 0.02},
    }


CONFIGS = {
    "a": _config("a", 1.0e-3, ["own", "far"], [0, 1], 1),
    "b": _config("b", 3.0e-3, ["own", "far"], [0, 1], 1),  # the same shards, and no cell in common with a
    "c": _config("c", 1.0e-3, ["own"], [1, 2], 2),  # some of the cells of a, measured otherwise
}
TABLES = ("cells", "datasets", "paths", "training")


@dataclass(frozen=True)
class Grid:
    """A checkout with these configurations in it."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, texts: Texts = (0, 0, 0)) -> "Grid":
        dirt = shutil.ignore_patterns("__pycache__", "*.egg-info")
        for part in ("src", "engine", "studies", "workflow", "envs"):
            shutil.copytree(ROOT / part, folder / part, ignore=dirt)
        shutil.copy2(ROOT / "Snakefile", folder)
        (folder / "lab_mix.py").write_text(MIX)
        (folder / "lab_look.py").write_text(LOOK)
        for name, config in CONFIGS.items():
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
        made = cls(folder)
        for file, text in zip(EDITS, texts):
            made.write(file, text)
        return made

    def copy(self, folder: Path) -> "Grid":
        """With its results, and with what Snakemake remembers."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return Grid(folder)

    @property
    def results(self) -> Path:
        return self.folder / "results"

    def texts(self) -> Texts:
        return tuple(int(new in (self.folder / file).read_text()) for file, (_, new) in EDITS.items())

    def write(self, file: str, text: int) -> None:
        """Give a file one of its two texts, at once."""
        path = self.folder / file
        before = path.read_text()
        old, new = EDITS[file][1 - text], EDITS[file][text]
        assert old in before or new in before, f"{file} no longer has {old!r}: adapt the campaign"
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_text(before.replace(old, new))
        os.replace(fresh, path)

    def files(self, kind: str) -> list[Path]:
        """Those of a kind, in an order that does not depend on when they were made."""
        pattern = {
            "data": "store/data/*.safetensors",
            "stack": "store/stacks/*/*.safetensors",
            "rows": "store/measures/*/*.parquet",
            "work": "work/**/*.*",
            "table": "tables/*.parquet",
            "figure": "figures/*.*",
        }
        return sorted(path for path in self.results.glob(pattern[kind]) if path.is_file() and path.name[0] != ".")

    def tracebacks(self) -> list[str]:
        """What logs say where a program ended in a way that nobody foresaw."""
        found = []
        for path in [*self.results.glob("logs/**/*.log"), *self.folder.glob(".snakemake/log/*.log")]:
            try:
                text = path.read_text(errors="replace")
            except FileNotFoundError:  # a run that is going on makes it anew
                continue
            found += [f"{path.relative_to(self.folder)}: {what}" for what in unforeseen(text)]
        return found


def unforeseen(text: str) -> list[str]:
    """Tracebacks in what a program said."""
    return [match.group() for match in re.finditer(r"Traceback \(most recent call last\):\n(?: .*\n)*.*\n?", text)]
