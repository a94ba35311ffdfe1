"""A throw-away copy of the checkout, run by real Snakemake, and what one run of it did."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import yaml

from rankfall.report import tables
from rankfall.run.store import Store

ROOT = Path(__file__).parents[2]
# Snakemake's plugin asks `scontrol` for SLURM's configuration whenever it is imported, and waits ten seconds for an answer where SLURM
# is installed and does not run. What runs on this machine alone is told at once that there is none.
NO_SLURM = Path(__file__).with_name("no_slurm")
TRAINED = re.compile(r"^(\d+) cells: (\d+) in store, (\d+) to train$", re.MULTILINE)

# Two architectures that share nothing but the trainer and a task; seconds to train.
CONFIG: dict[str, Any] = {
    "name": "tiny",
    "results": "results",
    "tasks": {"sorting": {"train": 60, "test": 20, "length": 5, "symbols": 6}},
    "architectures": {
        "soft": {"normaliser": "softmax", "mlp": "none", "heads": 2, "width": 8, "depth": 2},
        "far": {"normaliser": "l2", "mlp": "gelu", "heads": 2, "width": 8, "depth": 2},
    },
    "trainings": {"short": {"lr": 1.0e-3, "epochs": 2, "batch": 30}},
    "grid": [{"task": "sorting", "architecture": ["soft", "far"], "training": "short", "seed": [0, 1]}],
    "measures": {"paths": {"counts": [2], "repeats": 2}},
    "figures": {"paths": {}},
    "compute": {"engine": "plain", "threads": 1},
}


@dataclass(frozen=True)
class Run:
    """The outcome of one call of Snakemake."""

    code: int
    output: str
    jobs: Counter[str]  # rule -> jobs finished
    trained: int  # cells that jobs began to train, by their own logs


class Checkout:
    """Sources, workflow and a configuration of its own in a folder that tests may do anything to."""

    asks_slurm = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def make(cls, folder: Path, config: dict[str, Any] | None = None) -> Self:
        folder.mkdir(parents=True, exist_ok=True)
        dirt = shutil.ignore_patterns("__pycache__", "*.egg-info")
        for part in ("src", "engine", "studies", "workflow", "envs"):
            shutil.copytree(ROOT / part, folder / part, ignore=dirt)
        shutil.copy2(ROOT / "Snakefile", folder)
        made = cls(folder)
        made.configure(config or CONFIG)
        return made

    def copy(self, folder: Path) -> Self:
        """Copy the checkout with its results and with what Snakemake remembers."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return type(self)(folder)

    def configure(self, config: dict[str, Any]) -> None:
        (self.folder / "config.yaml").write_text(yaml.safe_dump({"page": False} | config, sort_keys=False))

    def source(self, name: str) -> Path:
        return self.folder / "src" / "rankfall" / name

    def command(self, *arguments: str) -> list[str]:
        profile = ("--workflow-profile", "workflow/profiles/default")
        return [sys.executable, "-m", "snakemake", *profile, "--cores", "2", *arguments]

    def environment(self) -> dict[str, str]:
        left_out = ("PYTHONPATH", "SNAKEMAKE_PROFILE", "PYTHONDONTWRITEBYTECODE")  # Python may compile what it likes
        path = os.environ["PATH"] if self.asks_slurm else f"{NO_SLURM}{os.pathsep}{os.environ['PATH']}"
        kept = {name: value for name, value in os.environ.items() if name not in left_out}
        return kept | {"OMP_NUM_THREADS": "1", "PATH": path}

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start Snakemake in a process group of its own, so that a test can kill all of it."""
        shutil.rmtree(self.results / "logs", ignore_errors=True)
        return self.start_beside(*arguments)

    def start_beside(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start Snakemake beside another that is running, whose logs are left alone."""
        return subprocess.Popen(
            self.command(*arguments), cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip

    def finish(self, process: "subprocess.Popen[str]") -> Run:
        output, _ = process.communicate(timeout=600)
        jobs = Counter(re.findall(r"^Finished jobid: \d+ \(Rule: (\w+)\)$", output, re.MULTILINE))
        del jobs["all"]
        logs = (self.results / "logs").rglob("*.log")
        trained = sum(int(to_train) for log in logs for _, _, to_train in TRAINED.findall(log.read_text()))
        return Run(process.returncode, output, jobs, trained)

    def run(self, *arguments: str) -> Run:
        """Run to the end, which must be a good one."""
        done = self.finish(self.start(*arguments))
        assert done.code == 0, done.output
        return done

    @property
    def results(self) -> Path:
        return self.folder / "results"

    @property
    def store(self) -> Store:
        return Store(self.results / "store")

    def kept(self) -> set[str]:
        """Return the keys of the cells that the store holds."""
        return {record.key for record in self.store.records()}

    def table(self, name: str) -> pa.Table:
        """Read a result table."""
        return tables.read(self.results / "tables" / f"{name}.parquet", name)

    def stacks(self) -> list[Path]:
        return sorted((self.results / "store" / "stacks").rglob("*.safetensors"))


def changed(config: dict[str, Any], **values: Any) -> dict[str, Any]:
    """Copy a configuration with some top-level keys replaced."""
    copied: dict[str, Any] = json.loads(json.dumps(config))
    return copied | values
