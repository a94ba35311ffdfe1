"""Draw one figure from tables."""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, required=True, help="the benchmark's config, YAML or JSON")
    parser.add_argument("--name", required=True, help="the figure's name in the config")
    parser.add_argument("--tables", type=Path, required=True, help="folder of tables")
    parser.add_argument("--out", type=Path, required=True, help="picture to write (.png; a .pdf beside it)")
    parser.add_argument("--caption", type=Path, help="caption to write (.rst), for the report")


def run(args: argparse.Namespace) -> int:
    from rankfall import components
    from rankfall.plan import make_plan
    from rankfall.report import style, tables

    figure = make_plan(args.config).figure(args.name)
    draw = components.load("figure", figure.component.name)
    with style.applied():
        picture = draw(
            lambda name: tables.read_frame(args.tables / f"{name}.parquet", name), **figure.component.options
        )
    style.save(picture, args.out, args.caption)
    return 0
