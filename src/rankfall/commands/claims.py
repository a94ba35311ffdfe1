"""What has been said about depth, and what a run says of it: all verdicts, one of them in full, or the page of the documentation."""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shown", nargs="?", metavar="NAME", help="all that is known of one claim")
    parser.add_argument(
        "--results", type=Path, default=Path("results/claims"), help="the folder of the run (default results/claims)"
    )
    parser.add_argument(
        "--docs", type=Path, metavar="PATH", help="write the page of the documentation from the run's tables"
    )
    parser.add_argument(
        "--check", action="store_true", help="docs: write nothing, fail if the page is not of these tables"
    )


def run(args: argparse.Namespace) -> int:
    from rankfall.errors import RankfallError
    from rankfall.report import export, tables
    from rankfall.report.claim_text import as_lines, as_page, in_full

    path = args.results / "tables" / "claims.parquet"
    if not path.is_file():
        raise RankfallError(
            f"{path} is no file: make run CONFIG=workflow/presets/claims.yaml makes it, or --results names another run that measures claims"
        )
    export.read_named(path)
    table = tables.read_frame(path, "claims")
    if args.docs:
        return _docs(args.docs, as_page(table), args.check)
    lines = in_full(table, args.shown) if args.shown else as_lines(table)
    print("\n".join(lines))
    return 0


def _docs(path: Path, text: str, check: bool) -> int:
    from rankfall.disk import atomic

    if check:
        same = path.is_file() and path.read_text(encoding="utf-8") == text
        print(
            f"{path}: {'up to date' if same else 'not of these tables; write it by: rankfall claims --docs ' + str(path)}"
        )
        return 0 if same else 1
    with atomic(path) as file:
        file.write(text.encode())
    print(f"{path}: written")
    return 0
