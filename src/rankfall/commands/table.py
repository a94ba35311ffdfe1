"""Show or export a table of the results as CSV or Parquet; or combine shards, compare two tables, or document all tables."""

import argparse
import sys
from pathlib import Path

from rankfall.commands import _planned

ARGUMENTS = (
    _planned.ARGUMENTS.replace(" (required)", "")
    + """
[TABLE]            show a table of the results, or export it
--name TABLE       combine: name of the table to make from the shards' files
--compare FILE...  show where two files of a table differ
--docs FILE        write the page that documents all tables
--csv              TABLE: as CSV, to the screen or to --out
--latex            TABLE: for LaTeX (booktabs), with --columns; scorecard: one setting
--columns A,B      TABLE: these columns only; scorecard: these numbers only
--setting LABEL    scorecard: this setting only, as the column `setting` has it
--out FILE         the file to write, CSV or Parquet by its suffix; combine: by default the one of the plan
--tolerance X      compare: relative (default: 0)
"""
)


def run(args: argparse.Namespace) -> int:
    from rankfall.errors import RankfallError

    if sum(map(bool, (args.table, args.name, args.compare, args.docs))) != 1 or len(args.compare) not in (0, 2):
        raise RankfallError("table: write one of TABLE, --name TABLE, --compare FILE FILE and --docs FILE")
    if args.docs:
        from rankfall.report.docs import document

        return _write(document(), args.docs)
    if args.compare:
        from rankfall.report import tables
        from rankfall.report.runs import differences

        first, second = map(tables.read, args.compare)
        unequal = differences(first, second, args.tolerance)
        print("\n".join(unequal) or "equal but for provenance")
        return 1 if unequal else 0
    return _combine(args) if args.name else _show(args)


def _show(args: argparse.Namespace) -> int:
    """Print a few rows of a table, or export all of it, or chosen columns. Print the scorecard by setting, or write one setting as LaTeX,
    with the labels of the configuration if there is one."""
    from rankfall.errors import RankfallError
    from rankfall.report import tables

    config = None
    if args.config is not None:
        from rankfall.run.config.types import parse, read

        config = parse(read(args.config))
    path = (args.results or Path(config.results if config else "results")) / "tables" / f"{args.table}.parquet"
    data = tables.read_named(path)
    columns = [name.strip() for name in (args.columns or "").split(",") if name.strip()]
    if args.table == "scorecard" and not args.csv and (args.out is None or args.latex):
        from rankfall.report.looks import looks
        from rankfall.report.score_text import as_latex, as_lines
        from rankfall.run.config.looks import check_looks

        scores = tables.read_frame(path, "scorecard")
        with looks(check_looks(config)[0] if config else {}, {}):
            if args.latex:
                architectures = list(config.architectures) if config else []
                return _write(as_latex(scores, columns, args.setting or "", architectures), args.out)
            return _write("\n".join(as_lines(scores, columns, args.setting or "")) + "\n", args.out)
    if args.setting:
        raise RankfallError("--setting is for `rankfall table scorecard`, on the screen or as LaTeX")
    if columns or args.latex:
        data = tables.select_columns(data, columns)
    if args.latex:
        from rankfall.report.score_text import rows_as_latex

        return _write(rows_as_latex(data), args.out)
    if args.csv and args.out is None:
        from pyarrow import csv

        csv.write_csv(data, sys.stdout.buffer)
    elif args.out is None:
        print("\n".join(tables.describe_table(data)))
    else:
        tables.export(data, args.out, "csv" if args.csv else None)
        print(f"{args.out}: {len(data)} rows")
    return 0


def _write(text: str, out: Path | None) -> int:
    """Print a text, or write it to a file."""
    from rankfall.disk import write

    if out is None:
        print(text, end="")
        return 0
    write(out, text)
    print(f"{out}: {text.count(chr(10))} lines")
    return 0


def _combine(args: argparse.Namespace) -> int:
    """Combine the files of a table's shards into one."""
    from rankfall.errors import RankfallError
    from rankfall.report import tables
    from rankfall.report.labels import many
    from rankfall.run.config.types import read
    from rankfall.run.plan.cell import digest

    if args.config is None:
        raise RankfallError("table --name: --config says which configuration's table to make")
    planned = _planned.plan_job(args, "table", args.name)
    # By the plan, because a command line has no room for thousands of files.
    parts = [planned.results / file for file in planned.job.inputs]
    out = args.out or planned.table_file(args.name)
    rows = tables.combine(args.name, parts, out, digest(read(args.config)))
    print(f"{out}: {rows} rows from {many(len(parts), 'file')}")
    return 0
