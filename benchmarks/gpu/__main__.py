"""Check and measure training on the GPU of this machine, and end with 1 if a check fails."""

import argparse
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from benchmarks.gpu import card as cards
from benchmarks.gpu import checks, compiled, grids, precision, sweep, watched
from benchmarks.gpu.limits import Card
from benchmarks.gpu.rows import Rows, describe_device
from rankfall.errors import RankfallError
from rankfall.train.device import prepare

# Seconds of each section, 475 in all. Only the longest look at the clock. The shell ends the command after 477.
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
SECTIONS: dict[str, Callable[..., None]] = {
    "bits": checks.check_bits,
    "agreement": checks.check_agreement,
    "stacks": checks.check_stacks,
    "resumed": checks.check_resumed,
    "precision": precision.measure_precision,
    "watched": watched.measure_watched,
    "grids": grids.time_grids,
}
LIMITED: dict[str, Callable[..., None]] = {
    "sweep": sweep.measure_sweep,
    "compiled": compiled.measure_compiled,
}  # by the card


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks/gpu.sh", description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=Path("results/gpu"))
    parser.add_argument(
        "--sections", nargs="+", choices=SECONDS, default=list(SECONDS), metavar="NAME", help=", ".join(SECONDS)
    )
    parser.add_argument("--tiny", action="store_true", help="test the command with the smallest sizes")
    args = parser.parse_args()
    try:
        device = prepare(args.device, 1)
    except RankfallError as error:
        sys.exit(str(error))
    machine, rows = describe_device(device, args.tiny), []
    print(f"{machine['device']}, torch {machine['torch']}, CUDA {machine['cuda']}, driver {machine['driver']}")
    card: Card | None = None
    for name, seconds in SECONDS.items():
        if name not in args.sections and not (name == "card" and LIMITED.keys() & set(args.sections)):
            continue
        section = Rows(name, args.out / f"{name}.parquet", machine, time.monotonic() + seconds)
        try:
            if name == "card":
                card = cards.measure_card(section, device, args.tiny)
            elif name in SECTIONS:
                SECTIONS[name](section, device, args.tiny)
            elif card is None:
                raise RuntimeError("the section card, whose rates are the limits, has failed")
            else:
                LIMITED[name](section, device, card, args.tiny)
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
