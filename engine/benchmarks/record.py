"""Write results as rows of a Parquet file, each with a description of the machine."""

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

MACHINE = [
    *((name, pa.string()) for name in ("device", "host", "system", "python", "torch", "numpy")),
    ("memory", pa.int64()),  # bytes of the device
    ("cores", pa.int64()),
    ("tiny", pa.bool_()),  # sizes that test the command
]
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("subject", "quantity", "network", "variant")),
        ("members", pa.int64()),
        ("dropout", pa.float64()),
        ("axis", pa.string()),  # what `size` counts
        ("size", pa.float64()),
        ("value", pa.float64()),
        ("unit", pa.string()),
        ("ratio", pa.float64()),  # value divided by that of `against` in the same run
        ("against", pa.string()),
        ("of_arithmetic", pa.float64()),  # share of the rate of large matrix products in the same processes
        *MACHINE,
    ]
)


def describe_machine(device: torch.device, tiny: bool) -> dict[str, Any]:
    """Return the columns of MACHINE."""
    gpu = torch.cuda.get_device_properties(device) if device.type == "cuda" else None
    return {
        "device": gpu.name if gpu else platform.processor() or platform.machine(),
        "host": platform.node(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "memory": gpu.total_memory if gpu else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "cores": os.cpu_count(),
        "tiny": tiny,
    }


def write_rows(rows: list[dict[str, Any]], schema: pa.Schema, file: Path) -> None:
    """Replace the file in one step, so that it is always whole."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".part")
    pq.write_table(pa.Table.from_pylist(rows, schema), partial)
    partial.replace(file)


class Results:
    """The rows of one subject. `members`: sizes of stacks that the user asks for; empty for the subject's default."""

    def __init__(self, subject: str, folder: Path, tiny: bool, members: Sequence[int] = ()) -> None:
        self.subject, self.file, self.tiny, self.members = subject, folder / f"{subject}.parquet", tiny, tuple(members)
        self.machine = describe_machine(torch.device("cpu"), tiny)
        self.rows: list[dict[str, Any]] = []

    def add(self, quantity: str, value: float, unit: str, **columns: Any) -> None:
        """Print a row and write it to the file at once."""
        assert columns.keys() <= set(SCHEMA.names), f"no column {columns.keys() - set(SCHEMA.names)}"
        row = {"subject": self.subject, "quantity": quantity, "value": value, "unit": unit, **columns}
        self.rows.append(self.machine | row)
        write_rows(self.rows, SCHEMA, self.file)
        count = f"{row['members']} members" if "members" in row else ""
        dropout = f"dropout {row['dropout']:g}" if "dropout" in row else ""
        size = f"{row['axis']} {row['size']:g}" if "size" in row else ""
        label = " ".join(str(part) for part in (row.get("network"), row.get("variant"), count, dropout, size) if part)
        ratio = f"  {row['ratio']:6.2f} x {row['against']}" if "ratio" in row else ""
        print(f"{self.subject:9} {quantity:14} {label:62} {value:10.4g} {unit}{ratio}", flush=True)
