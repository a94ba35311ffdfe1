"""A line a log on standard output: the loss, and the residual, entropy and norm of the layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SHOWN = ("residual", "entropy", "norm")


class StdoutSink:
    """Sink that prints a line, with a quantity in its first and last layer."""

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        parts = [] if rows[0]["loss"] is None else [f"loss {rows[0]['loss']:.4g}"]
        for name in SHOWN:
            known = [row for row in rows if row[name] is not None]
            if known:
                ends = [f"{row[name]:.3g} (layer {row['layer']})" for row in (known[0], known[-1])]
                parts.append(f"{name} {' to '.join(dict.fromkeys(ends))}")
        print(f"rankfall step {rows[0]['step']}: {', '.join(parts)}", flush=True)

    def close(self) -> None:
        """Do nothing: standard output stays open."""
