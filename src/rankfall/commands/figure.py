"""Draw one figure from tables."""

import argparse
from typing import TYPE_CHECKING

from rankfall.commands import _planned

if TYPE_CHECKING:
    from pandas import DataFrame

ARGUMENTS = (
    _planned.ARGUMENTS
    + """
--name NAME        the figure's name in the config (required)
--tables FOLDER    folder of tables, by default those of the plan
--out FILE         picture to write (.png; a .pdf, a .svg and the numbers as .csv beside it) (required)
--caption FILE     caption to write (.rst), for the report
"""
)


def run(args: argparse.Namespace) -> int:
    from rankfall import components
    from rankfall.errors import RankfallError
    from rankfall.report import style, tables
    from rankfall.report.looks import looks
    from rankfall.run.guards import check_job, guard_job

    planned = _planned.plan_job(args, "figure", args.name)
    figure = planned.plan.figures[args.name]

    def read(name: str) -> "DataFrame":
        return tables.read_frame(planned.table_file(name, args.tables), name)

    with (
        style.apply_style(),
        looks(planned.plan.labels, planned.plan.colours),
        guard_job([figure.code], planned.results),
    ):
        picture = components.load("figure", figure.component.name)(read, **figure.component.options)
        check_job()
    if not isinstance(picture, style.Picture):
        result = f"{figure.component.name} returns a {type(picture).__name__}"
        raise RankfallError(
            f"figure {args.name}: {result}; return `Picture(figure, caption)` (`from rankfall import Picture`)"
        )
    style.save(picture, args.out, args.caption)
    return 0
