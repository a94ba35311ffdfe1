"""The provenance of a cell as plain data: its specification, code, versions, machine, time, the end of its job's log, and a configuration
that computes it again.

It is derived from the record that the store keeps of a finished cell (`CellRecord.record`), for the page and for `rankfall show`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankfall.modules import PREFIX
from rankfall.yaml_text import dump

LAST = 20  # lines shown of a log
READ = 20_000  # bytes read at the end of a log
# Prefixes of files that are in the code of a cell, and so in its key, if the machine trained it, and if it did so on a GPU.
OF_MACHINE, OF_GPU = "rankfall/train/machine/", "rankfall/train/machine/gpu"
MACHINE = (
    "device",
    "dtype",
    "threads",
    "host",
    "processor",
    "versions",
    "engine",
    "commit",
    "time",
    "seconds",
    "megabytes",
    "stack",
)


def provenance(key: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provenance of a cell. Fields that a failed cell lacks are None."""
    code = record["code"]
    return {
        "key": key,
        "status": record["status"],
        "reason": record.get("reason") or "",
        **dict(zip(("task", "architecture", "training"), record["labels"])),
        "seed": record["seed"],
        "spec": record["content"],
        "data_key": record["data_key"],
        "code": {name: digest for name, digest in code.items() if not name.startswith(PREFIX)},
        "installed": {name.removeprefix(PREFIX): v for name, v in code.items() if name.startswith(PREFIX)},
        **{name: record.get(name) for name in (*MACHINE, "steps", "chance", "final")},
    }


def snippet(record: Mapping[str, Any]) -> str:
    """Return a complete configuration of this cell alone, which later changes of defaults do not affect."""
    content, (task, architecture, training) = record["content"], record["labels"]
    options = {"task": content["task"]["name"], **content["task"]["options"]}
    engine = "machine" if any(file.startswith(OF_MACHINE) for file in record["code"]) else "plain"
    device = {"device": "cuda"} if any(file.startswith(OF_GPU) for file in record["code"]) else {}
    config = {
        "name": "one-cell",
        "results": f"results-{task}-{record['seed']}",
        "tasks": {task: options},
        "architectures": {architecture: write_fields(content["architecture"])},
        "trainings": {training: write_fields(content["training"])},
        "grid": [{"task": task, "architecture": architecture, "training": training, "seed": record["seed"]}],
        "compute": {"engine": engine, **device},
    }
    return dump(config)


def write_fields(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields in the form of a configuration, without those that no component reads."""
    fields = {}
    for name, value in content.items():
        if isinstance(value, Mapping):  # a component
            fields[name] = {"name": value["name"], **value["options"]} if value["options"] else value["name"]
        elif value is not None:
            fields[name] = value
    return fields


def tail(log: Path | None, count: int = LAST) -> str | None:
    """Return the last lines of a log that are not empty; None if there is none."""
    try:
        text = log.read_bytes()[-READ:].decode("utf-8", "replace") if log else ""
    except OSError:
        return None
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(lines[max(0, len(lines) - count) :]) if log else None
