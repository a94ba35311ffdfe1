"""Write the results of a section as rows of a Parquet file, at once, so that a section that is interrupted keeps its rows."""

import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from engine.benchmarks.record import MACHINE, describe_machine, write_rows

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
        ("bound", pa.float64()),  # a check fails above it
        # Limits of a rate, in its unit, by the work of a step and by the rates of the card in the same run.
        ("limit_operations", pa.float64()),
        ("limit_state", pa.float64()),
        ("limit_unfused", pa.float64()),
        ("status", pa.string()),  # ok, failed, skipped
        ("reason", pa.string()),
        ("seconds", pa.float64()),  # since the row before
        *MACHINE,
        ("cuda", pa.string()),
        ("driver", pa.string()),
    ]
)


def describe_device(device: torch.device, tiny: bool) -> dict[str, Any]:
    """Return the columns that describe the machine, its GPU and the driver."""
    command, driver = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], None
    if device.type == "cuda":
        with suppress(OSError, subprocess.SubprocessError, IndexError):
            done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
            driver = done.stdout.splitlines()[0]
    return {**describe_machine(device, tiny), "cuda": torch.version.cuda, "driver": driver}


@dataclass(frozen=True)
class Work:
    """The work of a step of one member."""

    operations: float  # of matrix products; a multiplication and an addition are two
    state: float  # bytes
    unfused: float  # bytes


@dataclass(frozen=True)
class Card:
    """The measured rates of a device."""

    operations: float  # a second, in products of large float32 matrices
    bytes: float  # a second, read and written


class Rows:
    """The rows of one section. `deadline`: on the monotonic clock. `card`: rates that the section `card` has measured."""

    def __init__(self, section: str, file: Path, machine: dict[str, Any], deadline: float, card: Card | None) -> None:
        self.section, self.file, self.machine, self.deadline, self.card = section, file, machine, deadline, card
        self.rows: list[dict[str, Any]] = []
        self.began = time.monotonic()

    def add(self, quantity: str, value: float | None = None, unit: str = "", status: str = "ok", **more: Any) -> None:
        """Print a row and write it to the file."""
        now = time.monotonic()
        row = {"quantity": quantity, "value": value, "unit": unit, "status": status, "seconds": now - self.began}
        self.began = now
        self.rows.append({"section": self.section, **self.machine, **row, **more})
        label = " ".join(f"{name} {more[name]}" for name in ("shape", "members", "dropout", "engine") if name in more)
        limit = f" of {more['limit_unfused']:.4g} unfused" if more.get("limit_unfused") else ""
        number = "" if value is None else f"{value:.4g} {unit}{limit}"
        outcome = "" if status == "ok" else status
        print(f"{self.section:10} {quantity:28} {label:48} {number} {outcome} {more.get('reason', '')}")
        write_rows(self.rows, SCHEMA, self.file)

    def add_rate(self, rate: float, work: Work, **more: Any) -> None:
        """Add a rate in member-steps a second, with the limits that the card sets."""
        if self.card is None:
            raise RuntimeError("the section card, whose rates are the limits, has failed")
        limits = {
            "limit_operations": self.card.operations / work.operations,
            "limit_state": self.card.bytes / work.state,
            "limit_unfused": self.card.bytes / work.unfused,
        }
        self.add("rate", rate, "member-steps/s", **limits, **more)

    def check(self, quantity: str, value: float, bound: float, unit: str = "relative difference", **more: Any) -> None:
        """Add a difference that must not exceed its bound."""
        self.add(quantity, value, unit, "ok" if value <= bound else "failed", bound=bound, **more)

    @property
    def seconds_left(self) -> float:
        """Return the seconds until the deadline."""
        return self.deadline - time.monotonic()
