"""Results as rows of one Parquet file a subject, written at once, each with the machine's description."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from benchmarks.gpu.rows import machine

SCHEMA = pa.schema(
    [
        ("subject", pa.string()),
        ("quantity", pa.string()),
        ("network", pa.string()),
        ("variant", pa.string()),  # what was measured: the clean module, the plain engine or the machine, a dry run
        ("members", pa.int64()),
        ("dropout", pa.float64()),
        ("axis", pa.string()),  # what the size is of, where cost is shown against one
        ("size", pa.float64()),
        ("value", pa.float64()),
        ("unit", pa.string()),
        ("ratio", pa.float64()),  # value over that of `against`, which the same run measured
        ("against", pa.string()),
        ("of_arithmetic", pa.float64()),  # share of the rate of large matrix products of the same processes
        ("of_copy", pa.float64()),  # share of their rate of copying, by the bytes that unfused operations move
        *((name, pa.string()) for name in ("device", "host", "system", "python", "torch", "numpy")),
        ("memory", pa.int64()),  # bytes of the machine
        ("cores", pa.int64()),
        ("tiny", pa.bool_()),
    ]
)


@dataclass
class Results:
    """Of one subject."""

    subject: str
    file: Path
    tiny: bool
    machine: dict[str, Any]
    rows: list[dict[str, Any]] = field(default_factory=list)
    members: tuple[int, ...] = ()  # asked for; a subject's own if empty

    @classmethod
    def of(cls, subject: str, folder: Path, tiny: bool) -> "Results":
        folder.mkdir(parents=True, exist_ok=True)
        return cls(subject, folder / f"{subject}.parquet", tiny, machine(torch.device("cpu"), tiny))

    def add(self, quantity: str, value: float, unit: str, **more: Any) -> None:
        """One row; prints it and writes the file."""
        unknown = more.keys() - set(SCHEMA.names)
        assert not unknown, f"no column {unknown}"
        self.rows.append(
            {**self.machine, "subject": self.subject, "quantity": quantity, "value": value, "unit": unit} | more
        )
        named = (more.get("network"), more.get("variant"), more.get("members") and f"{more['members']} members")
        sized = f"{more['axis']} {more['size']:g}" if "size" in more else ""
        ratio = f"  {more['ratio']:6.2f} x {more['against']}" if "ratio" in more else ""
        said = " ".join(str(one) for one in (*named, sized) if one)
        print(f"{self.subject:9} {quantity:22} {said:58} {value:10.4g} {unit}{ratio}", flush=True)
        aside = self.file.with_suffix(".part")
        pq.write_table(
            pa.Table.from_pylist([{n: row.get(n) for n in SCHEMA.names} for row in self.rows], SCHEMA), aside
        )
        aside.replace(self.file)
