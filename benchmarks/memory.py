"""Peak memory of a training job against the size of its stack, beside what the plan estimates."""

import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.processes import run
from benchmarks.record import Results

SIZES = (1, 32, 128)
TASKS: dict[str, dict[str, Any]] = {
    "sorting": {"task": "sorting"},
    "masked_text": {"task": "masked_text", "train": 256, "vocabulary": 2000, "longer": None},
}


def measure(results: Results) -> None:
    from rankfall.run.plan import make_plan
    from rankfall.run.plan.cost import stack_megabytes
    from rankfall.run.store import Store

    for task in list(TASKS)[:1] if results.tiny else TASKS:
        for members in SIZES[:1] if results.tiny else SIZES[: 3 if task == "sorting" else 2]:
            given = config(task, members)
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "config.json").write_text(json.dumps(given))
                place = [
                    "--config",
                    f"{folder}/config.json",
                    "--results",
                    f"{folder}/results",
                    "--task",
                    task,
                    "--shard",
                    "0",
                ]
                run(["-m", "rankfall.cli", "train", *place])
                cells = list(make_plan(given).cells)
                peaks = [record.record["megabytes"] for record in Store(Path(folder) / "results" / "store").records()]
            estimate = stack_megabytes(cells[0].task, cells[0].architecture, cells[0].training, members)
            results.add(
                "peak", max(peaks), "MiB", network=task, members=members, axis="members", size=members,
                ratio=max(peaks) / estimate, against="estimate of the plan",
            )  # fmt: skip


def config(task: str, members: int) -> dict[str, Any]:
    mlp = "gelu" if task == "masked_text" else "none"
    return {
        "name": "bench",
        "tasks": {task: TASKS[task]},
        "architectures": {"net": {"depth": 6, "mlp": mlp}},
        "trainings": {"short": {"lr": 1e-3, "epochs": 1, "batch": 30, "dropout": 0.1}},
        "grid": [{"task": task, "architecture": "net", "training": "short", "seed": f"0..{members - 1}"}],
        "compute": {"threads": 1, "stack": members},
    }
