"""Make the checkout that the campaign runs: components of a user, three configurations, and three files with two texts each.

A run from nothing takes three seconds and makes four tables and a figure. Every number of the tables depends on the configuration and on
the texts of the three files alone.
"""

import os
import re
from pathlib import Path
from typing import Any, Self

import yaml
from checkout import Checkout

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
EDITS = {  # file -> (a text in it, the same after an edit)
    "lab_mix.py": ("SHARPNESS = 1.0", "SHARPNESS = 2.0"),
    "lab_look.py": ("SCALE = 1.0", "SCALE = 3.0"),
    "src/rankfall/nets/normalisers/l2.py": ("return weights / weights.norm", "return weights * weights.norm"),
}
Texts = tuple[int, ...]  # 0 or 1 for each file of EDITS
SMALL = {"heads": 2, "width": 8, "depth": 1}


def _config(name: str, rate: float, architectures: list[str], seeds: list[int], power: int) -> dict[str, Any]:
    return {
        "name": name,
        "page": False,
        "results": "results",
        "tasks": {"sorting": {"train": 40, "test": 10, "length": 6, "symbols": 5}},
        "architectures": {
            "own": {"normaliser": "lab_mix:sharp", "mlp": "none"} | SMALL,
            "far": {"normaliser": "l2", "mlp": "gelu"} | SMALL,
        },
        "trainings": {"short": {"lr": rate, "epochs": 12, "batch": 10}},
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
PATTERNS = {  # kind of results -> their files
    "data": "store/data/*.safetensors",
    "stack": "store/stacks/*/*.safetensors",
    "rows": "store/measures/*/*.parquet",
    "work": "work/**/*.*",
    "table": "tables/*.parquet",
    "figure": "figures/*.*",
}


class Grid(Checkout):
    """A checkout with these configurations in it."""

    @classmethod
    def prepare(cls, folder: Path, texts: Texts = (0, 0, 0)) -> Self:
        """Make a checkout with these texts of the three files."""
        grid = cls.make(folder)
        for name, config in CONFIGS.items():
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
        (folder / "lab_mix.py").write_text(MIX)
        (folder / "lab_look.py").write_text(LOOK)
        for file, text in zip(EDITS, texts):
            grid.write(file, text)
        return grid

    def texts(self) -> Texts:
        return tuple(int(new in (self.folder / file).read_text()) for file, (_, new) in EDITS.items())

    def write(self, file: str, text: int) -> None:
        """Write one of the two texts of a file in one step."""
        path = self.folder / file
        before = path.read_text()
        old, new = EDITS[file][1 - text], EDITS[file][text]
        assert old in before or new in before, f"{file} no longer has {old!r}: adapt the campaign"
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_text(before.replace(old, new))
        os.replace(fresh, path)

    def files(self, kind: str) -> list[Path]:
        """Return the results of a kind in the order of their names."""
        paths = self.results.glob(PATTERNS[kind])
        return sorted(path for path in paths if path.is_file() and path.name[0] != ".")

    def tracebacks(self) -> list[str]:
        """Return the tracebacks of all logs."""
        lines = []
        for path in [*self.results.glob("logs/**/*.log"), *self.folder.glob(".snakemake/log/*.log")]:
            try:
                text = path.read_text(errors="replace")
            except FileNotFoundError:  # a running job is about to replace it
                continue
            lines += [f"{path.relative_to(self.folder)}: {traceback}" for traceback in find_tracebacks(text)]
        return lines


def find_tracebacks(text: str) -> list[str]:
    """Return the tracebacks in a program's output."""
    return [match.group() for match in re.finditer(r"Traceback \(most recent call last\):\n(?: .*\n)*.*\n?", text)]
