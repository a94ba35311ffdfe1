"""Measure speed and memory, each as a ratio to a baseline that the same run measures.

Each subject writes one Parquet file. Seconds are processor time unless a row says otherwise, so that other work matters less.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name

SUBJECTS = {"rivals": f"{__package__}.rivals:measure"}  # name -> function


def main(subjects: Mapping[str, str], default: Sequence[str], folder: Path) -> None:
    """Run the subjects that the command line names, or the default ones."""
    from .record import Results

    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "subjects", nargs="*", metavar="SUBJECT", help=f"{', '.join(subjects)} (default: {' '.join(default)})"
    )
    parser.add_argument("--out", type=Path, default=folder, help="folder for the results")
    parser.add_argument("--tiny", action="store_true", help="test the command with the smallest sizes")
    parser.add_argument("--members", type=int, nargs="+", default=[], help="of rivals: sizes of stacks (1 16 64)")
    args = parser.parse_args()
    if unknown := [name for name in args.subjects if name not in subjects]:
        parser.error(f"there is no subject {unknown[0]!r}; choose from {', '.join(subjects)}")
    for name in args.subjects or default:
        began = time.monotonic()
        results = Results(name, args.out, args.tiny, args.members)
        resolve_name(subjects[name])(results)
        print(f"==> {name}: {time.monotonic() - began:.0f} s, {results.file}", flush=True)


if __name__ == "__main__":
    main(SUBJECTS, list(SUBJECTS), Path("results"))
