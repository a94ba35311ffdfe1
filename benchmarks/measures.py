"""Seconds of a processor that each measure takes for one more cell of sorting, beside an epoch of its training by the plain engine.

Of two jobs the difference, which is good to a tenth of a second: so they differ by many cells. What a measure costs does not depend
on how well a network is trained.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import yaml

from benchmarks.processes import ROOT, run
from benchmarks.record import Results

NAMES = (
    "paths",
    "references",
    "residuals",
    "law",
    "decomposition",
    "token_identity",
    "attention_identity",
    "attribution",
)
FEW, MANY = 1, 31


def measure(results: Results) -> None:
    names = NAMES[3:5] if results.tiny else NAMES
    many = 2 if results.tiny else MANY
    options = yaml.safe_load((ROOT / "config.yaml").read_text())["measures"]
    seconds: dict[str, dict[int, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for cells in (FEW, many):
            place = Path(folder) / str(cells)
            place.mkdir()
            (place / "config.json").write_text(json.dumps(config(names, options, cells)))
            given = [
                "--config",
                str(place / "config.json"),
                "--results",
                str(place / "results"),
                "--task",
                "sorting",
                "--shard",
                "0",
            ]
            seconds.setdefault("training", {})[cells] = run(["-m", "rankfall.cli", "train", *given]).seconds
            for name in names:
                command = [
                    "-m",
                    "rankfall.cli",
                    "measure",
                    *given,
                    "--measure",
                    name,
                    "--out",
                    str(place / f"{name}.parquet"),
                ]
                seconds.setdefault(name, {})[cells] = run(command).seconds
    each = {name: (found[many] - found[FEW]) / (many - FEW) for name, found in seconds.items()}
    for name, found in seconds.items():
        results.add(
            "one more cell", each[name], "s", network="sorting bare 6", variant=name, ratio=each[name] / each["training"],
            against="an epoch of training",
        )  # fmt: skip
        results.add("a job for one cell", found[FEW], "s", network="sorting bare 6", variant=name)


def config(names: tuple[str, ...], options: dict[str, Any], cells: int) -> dict[str, Any]:
    """Networks without norms, which every one of these measures admits."""
    return {
        "name": "bench",
        "tasks": {"sorting": {}},
        "architectures": {"bare": {"residual": "add", "norm": "none", "mlp": "none"}},
        "trainings": {"converged": {"lr": 1e-3, "epochs": 1, "batch": 30}},
        "grid": [
            {"task": "sorting", "architecture": "bare", "training": "converged", "depth": 6, "seed": f"0..{cells - 1}"}
        ],
        "measures": {name: {k: v for k, v in (options[name] or {}).items() if k != "cells"} for name in names},
        "compute": {"threads": 1},
    }
