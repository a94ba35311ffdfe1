"""Every number of a small run by an earlier commit and by the sources as they are, compared by specification.

    python -m benchmarks.versions e4811f2 [--tolerance 1e-12]

The run is that commit's own default configuration on tiny networks, with 2 seeds, without figures, by autograd. Tables whose form has
changed are named; `rankfall compare` says what differs, and the code that does.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).parents[1]
KEPT = ("paths", "references", "circle", "reproduction", "residuals", "law", "decomposition", "orders", "path_counts")
TASKS = {
    "sorting": {"train": 90, "test": 30, "length": 6, "symbols": 8},
    "convex_hull": {"train": 60, "test": 20, "points": 6},
    "memorization": {"train": 30, "test": 15, "length": 8, "vocabulary": 200},
    "circle": {"points": 40},
}
DEPTHS = {6: 3, 12: 5}
MODEL = {"num_hidden_layers": 2, "hidden_size": 48, "num_attention_heads": 4, "intermediate_size": 64}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit")
    parser.add_argument("--tolerance", default="0")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        archive = subprocess.run(
            ["git", "archive", args.commit, "src", "config.yaml"], cwd=ROOT, stdout=subprocess.PIPE, check=True
        )
        (folder / "before").mkdir()
        subprocess.run(["tar", "x", "-C", folder / "before"], input=archive.stdout, check=True)
        (folder / "config.json").write_text(json.dumps(reduced(folder / "before" / "config.yaml")))
        runs = [made(folder, "before", folder / "before" / "src"), made(folder, "now", ROOT / "src")]
        compare = [sys.executable, "-m", "rankfall.cli", "compare", *map(str, runs), "--tolerance", args.tolerance]
        return subprocess.run(compare, env=seeing(ROOT / "src")).returncode


def reduced(path: Path) -> dict[str, Any]:
    """The configuration on tiny networks."""
    import yaml

    config: dict[str, Any] = yaml.safe_load(path.read_text())
    config |= {"results": "results", "tasks": TASKS, "figures": {}, "compute": {"threads": 1, "shard_minutes": 30}}
    for name, training in config["trainings"].items():
        if name != "init":
            training["epochs"] = 3
    for architecture in config["architectures"].values():
        if "base" not in architecture:
            architecture |= {"heads": 2, "width": 16}
    config["grid"] = [small(entry) for entry in config["grid"] if entry["task"] in TASKS]
    config["measures"] = {name: small(given) for name, given in config["measures"].items() if name in KEPT}
    config["measures"]["paths"]["repeats"] = 2
    config["measures"]["orders"]["draws"] = 4
    for name, measure in {"bert": "model_residuals", "bert_law": "model_law"}.items():
        config["measures"][name] = {
            "measure": measure,
            "model": "bert-base-cased",
            "config": MODEL,
            "seeds": 2,
            "samples": 2,
        }
    return config


def small(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of the grid, or a measure with its filter, for these sizes."""
    given = {name: small(value) if isinstance(value, dict) else value for name, value in entry.items()}
    if "depth" in given:
        depths = given["depth"] if isinstance(given["depth"], list) else [given["depth"]]
        given["depth"] = sorted({DEPTHS.get(depth, depth) for depth in depths})
    return given | {name: value for name, value in {"width": 16, "seed": "0..1"}.items() if name in given}


def made(folder: Path, name: str, source: Path) -> Path:
    """The results of a run by the sources in a folder."""
    (folder / "runs" / name).mkdir(parents=True)
    command = [sys.executable, __file__, "--run", str(folder / "config.json")]
    subprocess.run(command, cwd=folder / "runs" / name, env=seeing(source), check=True, stdout=sys.stderr)
    return folder / "runs" / name / "results"


def seeing(source: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}


def earlier() -> tuple[Any, bool]:
    """The wiring of a version with other rooms, and whether tables and measures had to be told their inputs."""
    try:
        from rankfall.code import loader  # type: ignore[import-not-found]
    except ImportError:
        from rankfall.plan.workflow import Wiring  # type: ignore[import-not-found]

        return Wiring, True
    loader.install()
    from rankfall.schedule.wiring import Wiring  # type: ignore[import-not-found]

    return Wiring, False


def run(config: str) -> None:
    """All jobs one after the other, in this process and this folder, by whatever version it sees."""
    with suppress(ImportError):
        from rankfall.run.keys import loader  # type: ignore[attr-defined, unused-ignore]  # of earlier versions

        loader.install()
    from rankfall import cli

    try:
        from rankfall.run.plan import make_plan
        from rankfall.run.snakemake.jobs import PlanJobs
        from rankfall.run.snakemake.script import OPTIONS
    except ImportError:
        run_earlier(config)
        return
    for planned in PlanJobs(make_plan(config)).all_jobs:
        if planned.kind in ("figure", "page"):
            continue
        out, *others = (f"results/{file}" for file in planned.files)
        Path(out).parent.mkdir(parents=True, exist_ok=True)
        words = [f"--{name}={value}" for name, value in zip(OPTIONS[planned.kind], planned.names)]
        words += [f"--training-out={other}" for other in others]
        if cli.main([planned.kind, "--config", config, *words, "--out", out]):
            sys.exit(f"{planned.key} failed")


def run_earlier(config: str) -> None:
    """The same by a version whose files have no digests in their names."""
    from rankfall import cli

    try:
        from rankfall.run.snakemake.wiring import Wiring  # type: ignore[import-not-found]

        given = False
    except ImportError:
        Wiring, given = earlier()

    wiring = Wiring(json.loads(Path(config).read_text()))
    plan = wiring.plan

    def job(out: str, *words: str) -> None:
        Path(out).parent.mkdir(parents=True, exist_ok=True)
        if cli.main([words[0], "--config", config, *words[1:], "--out", out]):
            sys.exit(f"{' '.join(words)} failed")

    for task in sorted({task for task, _ in plan.shards}):
        job(f"results/shards/data/{task}.parquet", "data", "--task", task)
    for task, shard in plan.shards:
        out = f"results/shards/train/{task}/{shard}"
        outs = ["--training-out", f"{out}.training.parquet"]
        job(f"{out}.cells.parquet", "train", "--task", task, "--shard", shard, *outs)
    for name, measure in plan.measures.items():
        for task, shard in plan.shards if measure.needs == "cells" else ():
            if plan.measured_cells(name, task, shard):
                out = f"results/shards/measure/{name}/{task}/{shard}.parquet"
                job(out, "measure", "--measure", name, "--task", task, "--shard", shard)
    of_tables = {plan.measures[name].table for name in plan.measures if plan.measures[name].needs == "tables"}
    for needs, tables in (("nothing", set(wiring.tables) - of_tables), ("tables", of_tables)):
        for name, measure in plan.measures.items():
            if measure.needs == needs:
                told = ["--tables", "results/tables"] if given else []
                job(f"results/shards/measure/{name}.parquet", "measure", "--measure", name, *told)
        for table in sorted(tables):
            inputs = wiring.table_inputs(SimpleNamespace(table=table)) if given else []
            job(f"results/tables/{table}.parquet", "table", "--name", table, *inputs)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(sys.argv[2])
    else:
        sys.exit(main())
