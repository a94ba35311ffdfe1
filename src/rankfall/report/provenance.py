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


def provenance(key: str, record: Mapping[str, Any], log: Path | None = None) -> dict[str, Any]:
    """Return the provenance of a cell. Fields that an older record lacks are None. `log`: the log of its shard's last job."""
    labels = record.get("labels") or (None, None, None)
    code = record.get("code") or {}
    return {
        "key": key,
        "status": record["status"],
        "reason": record.get("reason") or "",
        **dict(zip(("task", "architecture", "training"), labels)),
        "seed": record.get("seed"),
        "spec": record.get("content"),
        "data_key": record.get("data_key"),
        "code": {name: digest for name, digest in code.items() if not name.startswith(PREFIX)},
        "installed": {name.removeprefix(PREFIX): v for name, v in code.items() if name.startswith(PREFIX)},
        **{name: record.get(name) for name in MACHINE},
        "steps": record.get("steps"),
        "chance": record.get("chance"),
        "final": record.get("final"),
        "snippet": snippet(record),
        "log": tail(log),
    }


def snippet(record: Mapping[str, Any]) -> str | None:
    """Return a complete configuration of this cell alone, which later changes of defaults do not affect; None for an older record."""
    content, labels = record.get("content"), record.get("labels")
    if not content or not labels:
        return None
    task, architecture, training = labels
    options = {"task": content["task"]["name"], **content["task"]["options"]}
    files = record.get("code") or ()
    engine = "machine" if any(file.startswith(OF_MACHINE) for file in files) else "plain"
    config = {
        "name": "one-cell",
        "results": f"results-{task}-{record['seed']}",
        "tasks": {task: options},
        "architectures": {architecture: _write_fields(content["architecture"])},
        "trainings": {training: _write_fields(content["training"])},
        "grid": [{"task": task, "architecture": architecture, "training": training, "seed": record["seed"]}],
        "compute": {"engine": engine, **({"device": "cuda"} if any(file.startswith(OF_GPU) for file in files) else {})},
    }
    return dump(config)


def _write_fields(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields in the form of a configuration, without those that no component reads."""
    return {name: _part(value) for name, value in content.items() if value is not None}


def _part(value: Any) -> Any:
    """Return a component in the form of a configuration, and any other value unchanged."""
    if not isinstance(value, Mapping):
        return value
    return {"name": value["name"], **value["options"]} if value["options"] else value["name"]


def tail(log: Path | None, count: int = LAST) -> str | None:
    """Return the last lines of a log that are not empty; None if there is none."""
    try:
        text = log.read_bytes()[-READ:].decode("utf-8", "replace") if log else ""
    except OSError:
        return None
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(lines[max(0, len(lines) - count) :]) if log else None
