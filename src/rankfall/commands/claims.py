"""Show published claims about depth and the verdicts of a run: all of them, or one in full."""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shown", nargs="?", metavar="NAME", help="show one claim in full")
    parser.add_argument(
        "--results", type=Path, help="the folder of the run (default results/claims; without it, results)"
    )
    parser.add_argument(
        "--rows",
        action="store_true",
        help="print the rows on which a claim's verdict rests, as CSV with one number per row",
    )
    parser.add_argument(
        "--docs",
        type=Path,
        metavar="PATH",
        help="write the verdicts as CSV, of which the page of the documentation is made",
    )


def run(args: argparse.Namespace) -> int:
    from rankfall.errors import RankfallError
    from rankfall.report import tables
    from rankfall.report.claim_text import DECIDED, as_lines, in_full, one_of

    preset = Path("results/claims")
    results = args.results or (preset if preset.is_dir() else Path("results"))
    path = results / "tables" / "claims.parquet"
    if not path.is_file():
        raise RankfallError(
            f"{path} is missing: a run with claims writes it\n"
            "Say `make run CONFIG=workflow/presets/claims.yaml` in a checkout, which has the studies, or pass --results of another run"
        )
    tables.read_named(path)
    table = tables.read_frame(path, "claims")
    if args.docs:
        return _docs(args.docs, table[DECIDED].to_csv(index=False, lineterminator="\n"))
    if args.rows:
        if not args.shown:
            raise RankfallError("--rows needs a claim: rankfall claims NAME --rows; rankfall claims lists them")
        one_of(table, args.shown)
        return _print_rows(path.with_name("evidence.parquet"), args.shown)
    lines = [*in_full(table, args.shown), *_pictures(results, args.shown)] if args.shown else as_lines(table)
    print("\n".join(lines))
    return 0


def _print_rows(path: Path, claim: str) -> int:
    """Print the rows that the experiment has measured for this claim."""
    from rankfall.report import tables

    tables.read_named(path)
    rows = tables.read_frame(path, "evidence")
    rows = rows[rows.claim == claim].drop(columns="claim")
    print(rows.to_csv(index=False), end="")
    return 0


def _pictures(results: Path, claim: str) -> list[str]:
    """Return lines that name the figures of a claim, detected by their .csv files, and the command that prints its rows."""
    import pandas as pd

    found = []
    for path in sorted((results / "figures").glob("*.csv")):
        head = pd.read_csv(path, nrows=0).columns
        if "claim" in head and claim in set(pd.read_csv(path, usecols=["claim"]).claim):
            found.append(f"figure: {path.with_suffix('.png')}")
    return [*found, f"rows: rankfall claims {claim} --rows"]


def _docs(path: Path, text: str) -> int:
    from rankfall.disk import atomic

    with atomic(path) as file:
        file.write(text.encode())
    print(f"{path}: written")
    return 0
