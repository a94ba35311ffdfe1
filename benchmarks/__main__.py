"""Speed and memory, each as a ratio to something that is measured in the same run: `make bench`, or `make bench ARGS="steps growth"`.

Every subject is a file here and leaves one Parquet file; the figure shows them all. Seconds are those of processors, not of a clock,
unless a row says otherwise: what else runs on the machine then matters less.
"""

import argparse
import importlib
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUBJECTS = ("steps", "kinds", "growth", "cells", "measures", "planning", "memory", "watch")
ASKED = ("rivals",)  # only if named: it compiles for most of an hour, and needs JAX


def main() -> None:
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "tests" / "workflow")]
    from benchmarks.record import Results

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument(
        "subjects", nargs="*", metavar="SUBJECT", help=f"of {', '.join(SUBJECTS)}; all if none is named"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "bench", help="folder for the results")
    parser.add_argument("--tiny", action="store_true", help="sizes of a test of this command, not of a measurement")
    parser.add_argument("--members", type=int, nargs="+", help="of rivals: numbers of members (1 16 64)")
    args = parser.parse_args()
    unknown = [name for name in args.subjects if name not in SUBJECTS + ASKED]
    if unknown:
        parser.error(f"there is no subject {unknown[0]!r}; there are {', '.join(SUBJECTS + ASKED)}")
    for name in args.subjects or SUBJECTS:
        began = time.monotonic()
        results = Results.of(name, args.out, args.tiny)
        results.members = tuple(args.members or ())
        importlib.import_module(f"benchmarks.{name}").measure(results)
        print(f"==> {name}: {time.monotonic() - began:.0f} s, {results.file}", flush=True)
    from benchmarks.figure import draw

    print(f"==> {draw(args.out)}", flush=True)


if __name__ == "__main__":
    main()
