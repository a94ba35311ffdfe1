"""Draw one figure from tables."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rankfall.commands import _planned

if TYPE_CHECKING:
    from pandas import DataFrame


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _planned.add_arguments(parser)
    parser.add_argument("--name", required=True, help="the figure's name in the config")
    parser.add_argument("--tables", type=Path, help="folder of tables, by default results' tables/")
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="picture to write (.png; a .pdf, a .svg and the numbers as .csv beside it)",
    )
    parser.add_argument("--caption", type=Path, help="caption to write (.rst), for the report")


def run(args: argparse.Namespace) -> int:
    from rankfall import components
    from rankfall.errors import RankfallError
    from rankfall.report import style, tables
    from rankfall.report.looks import looks
    from rankfall.run.guards.reads import restrict_reads
    from rankfall.run.guards.unchanged import prove_code, prove_numbers
    from rankfall.run.plan.slices import Slice

    own = _planned.make_plan(args, lambda written: Slice([]), lambda said: said.figure(args.name))
    figure = own.plan.figure(args.name)
    made = own.check(own.fingerprints.figure(args.name), f"figure {args.name}")
    folder = args.tables or own.results / "tables"
    if args.tables is None:
        own.check_tables(figure.tables)
    else:
        made = {}  # no record: the tables may differ from those of the plan

    def read(name: str) -> "DataFrame":
        with restrict_reads(None):
            return tables.read_frame(folder / f"{name}.parquet", name)

    code = figure.code
    with (
        style.apply_style(),
        looks(own.plan.labels, own.plan.colours),
        prove_code([code], own.results),
        prove_numbers(code),
    ):
        picture = components.load("figure", figure.component.name)(read, **figure.component.options)
    if not isinstance(picture, style.Picture):
        what = f"{figure.component.name} returns a {type(picture).__name__}"
        raise RankfallError(f"figure {args.name}: {what}; return `Picture(figure, caption)` of rankfall.report.style")
    style.save(picture, args.out, args.caption, made)
    return 0
