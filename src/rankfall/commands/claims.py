"""Show published claims about depth and the verdicts of a run: all of them, or one in full."""

import argparse
from pathlib import Path

ARGUMENTS = """
[NAME]             show one claim in full
--results FOLDER   the folder of the run; by default results/claims or, without it, results
--rows             print the rows on which a claim's verdict rests, as CSV with one number per row
--docs FILE        write the verdicts as CSV, of which the page of the documentation is made
"""


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
        if not args.name:
            raise RankfallError("--rows needs a claim: rankfall claims NAME --rows; rankfall claims lists them")
        one_of(table, args.name)
        return _print_rows(path.with_name("evidence.parquet"), args.name)
    lines = [*in_full(table, args.name), *_pictures(results, args.name)] if args.name else as_lines(table)
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
    return [*found, f"rows: rankfall claims {claim} --rows --results {results}"]


def _docs(path: Path, text: str) -> int:
    from rankfall.disk import atomic

    with atomic(path) as file:
        file.write(text.encode())
    print(f"{path}: written")
    return 0
