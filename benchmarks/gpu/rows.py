"""The results as rows, written at once, each with the machine's description: a section that is cut short loses nothing."""

import os
import platform
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

SCHEMA = pa.schema(
    [
        ("section", pa.string()),
        ("quantity", pa.string()),
        ("shape", pa.string()),  # of the network
        ("members", pa.int64()),
        ("dropout", pa.float64()),
        ("engine", pa.string()),  # plain, captured or machine_gpu
        ("value", pa.float64()),
        ("unit", pa.string()),
        ("bound", pa.float64()),  # of a check: it fails above
        # Limits of a rate, in its unit, from what was counted for one step and measured of this card in the same run.
        ("limit_operations", pa.float64()),
        ("limit_state", pa.float64()),
        ("limit_unfused", pa.float64()),
        ("status", pa.string()),  # ok, failed, skipped
        ("reason", pa.string()),
        ("seconds", pa.float64()),  # what it took to find out
        *((name, pa.string()) for name in ("device", "host", "system", "python", "torch", "numpy", "cuda", "driver")),
        ("memory", pa.int64()),  # bytes of the device
        ("cores", pa.int64()),
        ("tiny", pa.bool_()),  # sizes of a test of this command, not of a measurement
    ]
)


def machine(device: torch.device, tiny: bool) -> dict[str, Any]:
    gpu = torch.cuda.get_device_properties(device) if device.type == "cuda" else None
    memory = gpu.total_memory if gpu else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "device": gpu.name if gpu else platform.processor() or platform.machine(),
        "host": platform.node(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "cuda": torch.version.cuda,
        "driver": driver() if gpu else None,
        "memory": memory,
        "cores": os.cpu_count(),
        "tiny": tiny,
    }


def driver() -> str | None:
    asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, timeout=20, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        return None


@dataclass
class Rows:
    """Of one section, in one file."""

    section: str
    file: Path
    machine: dict[str, Any]
    deadline: float  # of the section, on the monotonic clock
    rows: list[dict[str, Any]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def add(self, quantity: str, value: float | None = None, unit: str = "", status: str = "ok", **more: Any) -> None:
        now = time.monotonic()
        row = {"quantity": quantity, "value": value, "unit": unit, "status": status, "seconds": now - self.began}
        self.began = now
        self.rows.append({"section": self.section, **self.machine, **row, **more})
        said = " ".join(f"{name} {more[name]}" for name in ("shape", "members", "dropout", "engine") if name in more)
        limit = f" of {more['limit_unfused']:.4g} unfused" if more.get("limit_unfused") else ""
        number = "" if value is None else f"{value:.4g} {unit}{limit}"
        print(
            f"{self.section:10} {quantity:28} {said:48} {number} {status if status != 'ok' else ''} {more.get('reason', '')}"
        )
        self.write()

    def check(self, quantity: str, value: float, bound: float, **more: Any) -> None:
        """A difference that must not exceed its bound."""
        self.add(
            quantity,
            value,
            more.pop("unit", "relative difference"),
            "ok" if value <= bound else "failed",
            bound=bound,
            **more,
        )

    def write(self) -> None:
        aside = self.file.with_suffix(".part")
        pq.write_table(pa.Table.from_pylist(self.rows, SCHEMA), aside)
        aside.replace(self.file)

    @property
    def left(self) -> float:
        """Seconds of the section's time that are left."""
        return self.deadline - time.monotonic()
