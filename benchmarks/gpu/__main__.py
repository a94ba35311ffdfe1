"""Check and measure training on the GPU of this machine, and end with 1 if a check fails."""

import argparse
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks.gpu import checks, grids, precision, sweep, watched
from benchmarks.gpu.limits import measure_card
from benchmarks.gpu.rows import Card, Rows, describe_device
from rankfall.errors import RankfallError
from rankfall.train.device import prepare

# Seconds and function of each section, 475 s in all. Only the longest look at the clock. The shell ends the command after 477 s.
SECTIONS: dict[str, tuple[int, Callable[[Rows, torch.device, bool], Card | None]]] = {
    "card": (20, measure_card),
    "bits": (5, checks.check_bits),
    "agreement": (40, checks.check_agreement),
    "stacks": (20, checks.check_stacks),
    "resumed": (50, checks.check_resumed),
    "sweep": (100, sweep.measure_sweep),
    "compiled": (50, sweep.measure_compiled),
    "precision": (15, precision.measure_precision),
    "watched": (35, watched.measure_watched),
    "grids": (140, grids.time_grids),
}
NEED_CARD = {"sweep", "compiled"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks/gpu.sh", description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=Path("results/gpu"))
    names = {"choices": SECTIONS, "default": list(SECTIONS), "help": ", ".join(SECTIONS)}
    parser.add_argument("--sections", nargs="+", metavar="NAME", **names)
    parser.add_argument("--tiny", action="store_true", help="test the command with the smallest sizes")
    args = parser.parse_args()
    try:
        device = prepare(args.device, 1)
    except RankfallError as error:
        sys.exit(str(error))
    machine, rows = describe_device(device, args.tiny), []
    print(f"{machine['device']}, torch {machine['torch']}, CUDA {machine['cuda']}, driver {machine['driver']}")
    card: Card | None = None
    for name, (seconds, function) in SECTIONS.items():
        if name not in args.sections and not (name == "card" and NEED_CARD & {*args.sections}):
            continue
        section = Rows(name, args.out / f"{name}.parquet", machine, time.monotonic() + seconds, card)
        try:
            card = function(section, device, args.tiny) or card
        except Exception as error:  # the next section may succeed
            traceback.print_exc()
            section.add("section", status="failed", reason=f"{type(error).__name__}: {error}".splitlines()[0])
        rows += section.rows
    failed = [row for row in rows if row["status"] == "failed"]
    print(f"{len(rows)} rows in {args.out}, {len(failed)} failed")
    for row in failed:
        print("failed:", *(row[name] for name in ("section", "quantity", "shape", "value", "reason") if row.get(name)))
    sys.exit(1 if failed else 0)


main()
