"""`bash benchmarks/gpu.sh`: every section in its time, and a summary with what failed."""

import argparse
import sys
import time
import traceback
from pathlib import Path

import torch

from benchmarks.gpu import card as cards
from benchmarks.gpu import checks, compiled, grids, precision, sweep, watched
from benchmarks.gpu.limits import Card
from benchmarks.gpu.rows import Rows, machine
from rankfall.errors import RankfallError
from rankfall.train.device import prepare

# What each may take, 475 in all. Only the longest look at the clock; the shell ends the whole.
SECONDS = {
    "card": 20,
    "bits": 5,
    "agreement": 40,
    "stacks": 20,
    "resumed": 50,
    "sweep": 100,
    "compiled": 50,
    "precision": 15,
    "watched": 35,
    "grids": 140,
}
JUDGED = ("sweep", "compiled")  # by what the card can do


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks/gpu.sh", description=(__doc__ or "").split(":")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=Path("results/gpu"))
    parser.add_argument(
        "--sections", nargs="+", choices=SECONDS, default=list(SECONDS), metavar="NAME", help=", ".join(SECONDS)
    )
    parser.add_argument("--tiny", action="store_true", help="smallest sizes: a test of this command")
    args = parser.parse_args()
    try:
        device = prepare(args.device, 1)
    except RankfallError as error:
        sys.exit(str(error))
    args.out.mkdir(parents=True, exist_ok=True)
    about, found = machine(device, args.tiny), []
    print(f"{about['device']}, torch {about['torch']}, CUDA {about['cuda']}, driver {about['driver']}")
    measured: Card | None = None
    for name in SECONDS:
        if name not in args.sections and not (name == "card" and set(JUDGED) & set(args.sections)):
            continue
        rows = Rows(name, args.out / f"{name}.parquet", about, time.monotonic() + SECONDS[name])
        try:
            measured = section(name, rows, device, args.tiny, measured) or measured
        except Exception as error:  # the next section may well succeed
            traceback.print_exc()
            rows.add("section", status="failed", reason=f"{type(error).__name__}: {error}".splitlines()[0])
        found += rows.rows
    failed = [row for row in found if row["status"] == "failed"]
    print(f"{len(found)} rows in {args.out}, {len(failed)} failed")
    for row in failed:
        print(
            f"failed: {row['section']}: {row['quantity']} {row.get('shape') or ''} {row['value']} {row.get('reason') or ''}"
        )
    sys.exit(1 if failed else 0)


def section(name: str, rows: Rows, device: torch.device, tiny: bool, card: Card | None) -> Card | None:
    if name == "card":
        return cards.measure_card(rows, device, tiny)
    if name in JUDGED:
        if card is None:
            raise RuntimeError("the section card, by which rates are judged, has failed")
        (sweep.sweep if name == "sweep" else compiled.measure_compiled)(rows, device, card, tiny)
    elif name == "bits":
        checks.check_bits(rows, device)
    else:
        run = {
            "agreement": checks.check_agreement,
            "stacks": checks.check_stacks,
            "resumed": checks.check_resumed,
            "precision": precision.measure_precision,
            "watched": watched.measure_watched,
            "grids": grids.time_grids,
        }[name]
        run(rows, device, tiny)
    return None


main()
