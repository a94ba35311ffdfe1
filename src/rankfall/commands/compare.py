"""Show what differs between two runs, by specification: the effect of an edit of the code on the numbers."""

import argparse
import json
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("one", type=Path, metavar="RUN", help="a folder of results")
    parser.add_argument("other", type=Path, metavar="RUN", help="another folder of results")
    parser.add_argument(
        "--tolerance", type=float, default=0.0, help="relative differences up to this are none (default 0: bit for bit)"
    )
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    from rankfall.report.runs import as_lines, as_records, compare_runs

    found = compare_runs(args.one, args.other, args.tolerance)
    print(json.dumps(as_records(found), indent=2) if args.json else "\n".join(as_lines(found)))
    return 1 if any(found.values()) else 0
