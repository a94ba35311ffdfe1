"""Show or export a table of the results as CSV or Parquet; or combine shards, compare two tables, or document all tables."""

import argparse
import math
import sys
from pathlib import Path

from rankfall.commands import _planned


def add_arguments(parser: argparse.ArgumentParser) -> None:
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("shown", nargs="?", metavar="NAME", help="show a table of the results, or export it")
    action.add_argument("--name", help="combine: name of the table to make from the shards' files")
    action.add_argument(
        "--compare", nargs=2, type=Path, metavar=("A", "B"), help="show where two files of a table differ"
    )
    action.add_argument("--docs", type=Path, metavar="PATH", help="write the page that documents all tables")
    parser.add_argument("--csv", action="store_true", help="NAME: as CSV, to the screen or to --out")
    parser.add_argument("--latex", action="store_true", help="scorecard: a table of one setting, for LaTeX (booktabs)")
    parser.add_argument(
        "--columns", metavar="A,B", help="scorecard: these numbers only, as the page of tables calls them"
    )
    parser.add_argument(
        "--setting", default="", metavar="LABEL", help="scorecard: this setting only, as the column `setting` has it"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="the file to write, CSV or Parquet by its suffix; combine: by default the one of the plan",
    )
    _planned.add_arguments(parser, required=False)
    parser.add_argument("--tolerance", type=float, default=0.0, help="compare: relative (default 0)")


def run(args: argparse.Namespace) -> int:
    if args.docs:
        return _docs(args.docs)
    if args.compare:
        return _compare(args.compare[0], args.compare[1], args.tolerance)
    return _combine(args) if args.name else _show(args)


def _show(args: argparse.Namespace) -> int:
    """Print a few rows of a table, or export all of it."""
    from rankfall.errors import RankfallError
    from rankfall.report import tables

    path = _folder(args) / "tables" / f"{args.shown}.parquet"
    if args.shown == "scorecard" and not args.csv and (args.out is None or args.latex):
        return _scorecard(args, path)
    for option in ("latex", "columns", "setting"):
        if getattr(args, option):
            raise RankfallError(f"--{option} is for `rankfall table scorecard`, on the screen or as LaTeX")
    if args.csv and args.out is None:
        tables.to_csv(tables.read_named(path), sys.stdout.buffer)
    elif args.out is None:
        print("\n".join(tables.describe_table(tables.read_named(path))))
    else:
        data = tables.read_named(path)
        tables.export(data, args.out, "csv" if args.csv else None)
        print(f"{args.out}: {len(data)} rows")
    return 0


def _scorecard(args: argparse.Namespace, path: Path) -> int:
    """Write the scorecard by setting as text, or one setting as LaTeX, with the labels of the configuration if there is one."""
    from rankfall.disk import atomic
    from rankfall.report import tables
    from rankfall.report.looks import looks
    from rankfall.report.score_text import as_latex, as_lines

    tables.read_named(path)  # raises an error that lists the tables if this one is missing
    scores = tables.read_frame(path, "scorecard")
    columns = [name.strip() for name in args.columns.split(",") if name.strip()] if args.columns else []
    labels, architectures = _read_config(args)
    with looks(labels, {}):
        if args.latex:
            text = as_latex(scores, columns, args.setting, architectures)
        else:
            text = "\n".join(as_lines(scores, columns, args.setting)) + "\n"
    if args.out is None:
        print(text, end="")
        return 0
    with atomic(args.out) as file:
        file.write(text.encode())
    print(f"{args.out}: {text.count(chr(10))} lines")
    return 0


def _read_config(args: argparse.Namespace) -> tuple[dict[str, str], list[str]]:
    """Return the labels of the configuration and its architectures, in their order; empty without a configuration."""
    if args.config is None:
        return {}, []
    from rankfall.run.config.looks import check_labels
    from rankfall.run.config.types import parse, read

    config = parse(read(args.config))
    return check_labels(config), list(config.architectures)


def _folder(args: argparse.Namespace) -> Path:
    """Return the folder of results from the arguments, the configuration or the default."""
    if args.results is None and args.config is not None:
        from rankfall.run.config.types import parse, read

        return Path(parse(read(args.config)).results)
    return args.results or Path("results")


def _combine(args: argparse.Namespace) -> int:
    from rankfall.errors import RankfallError
    from rankfall.report import tables

    if args.config is None:
        raise RankfallError("table --name: --config says which configuration's table to make")
    own = _planned.plan_job(args, "table", args.name)
    parts = own.inputs  # by the plan: a command line has no room for thousands
    out = args.out or own.table_file(args.name)
    if out.suffix != ".parquet":
        raise RankfallError(
            f"table --name: --out {out}: shards are combined into a .parquet file; `rankfall table {args.name} --out {out}` exports it"
        )
    rows = tables.combine(args.name, parts, out, config_digest(args.config))
    print(f"{out}: {rows} rows from {len(parts)} file{'s' * (len(parts) != 1)}")
    return 0


def _compare(one: Path, other: Path, tolerance: float) -> int:
    from rankfall.errors import RankfallError
    from rankfall.report import tables
    from rankfall.report.runs import differences

    if not 0 <= tolerance < math.inf:
        raise RankfallError(f"--tolerance {tolerance}: it must be a finite number of at least 0")

    found = differences(tables.read(one), tables.read(other), tolerance)
    print("\n".join(found) or "equal but for provenance")
    return 1 if found else 0


def _docs(path: Path) -> int:
    from rankfall.disk import atomic
    from rankfall.report.docs import document

    with atomic(path) as handle:
        handle.write(document().encode())
    print(f"wrote {path}")
    return 0


def config_digest(path: Path) -> str:
    """Return the digest that identifies a configuration in metadata. It depends on the values, not on their order and notation."""
    import hashlib
    import json

    from rankfall.run.config.types import read

    values = read(path)
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:16]
