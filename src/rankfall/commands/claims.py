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
    from rankfall.disk import write
    from rankfall.errors import RankfallError
    from rankfall.project import is_checkout, run_command
    from rankfall.report import tables
    from rankfall.report.claim_text import DECIDED, as_lines, in_full, row_of_claim
    from rankfall.report.style import unescape

    preset = Path("results/claims")
    results = args.results or (preset if preset.is_dir() else Path("results"))
    path = results / "tables" / "claims.parquet"
    if not path.is_file():
        again = f"`{run_command(Path('workflow/presets/claims.yaml'))}`"
        if not is_checkout():
            again = f"`claims: {{}}` among the `measures` of the configuration, then `{run_command()}`"
        raise RankfallError(
            f"{path} is missing: a run with claims writes it\n  fix: {again}, or pass --results of another run"
        )
    table = tables.read_frame(path, "claims")
    if args.docs:
        write(args.docs, table[DECIDED].to_csv(index=False, lineterminator="\n"))
        print(f"{args.docs}: written")
    elif args.rows:
        if not args.name:
            raise RankfallError("--rows needs a claim: rankfall claims NAME --rows; rankfall claims lists them")
        row_of_claim(table, args.name)
        rows = tables.read_frame(path.with_name("evidence.parquet"), "evidence")
        print(rows[rows.claim == args.name].drop(columns="claim").to_csv(index=False), end="")
    elif args.name:
        print("\n".join(in_full(table, args.name)))
        says = row_of_claim(table, args.name).says
        for caption in sorted((results / "figures").glob("*.rst")):
            if says in unescape(caption.read_text("utf-8")):
                print(f"figure: {caption.with_suffix('.png')}")
        print(f"rows: rankfall claims {args.name} --rows --results {results}")
    else:
        print("\n".join(as_lines(table)))
    return 0
