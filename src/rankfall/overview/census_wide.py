"""The measure `census_wide`: what small models keep beside models of the released width, from the census by layer."""

from typing import Any

from rankfall.measure.context import Context
from rankfall.report.page.chart import POSITIVE, Chart
from rankfall.report.schema import Table, declare_table


def columns() -> Table:
    """Declare the table of types that were measured at both sizes."""
    return declare_table(
        "census_wide",
        "each model type",
        """
        type text: the library's name of the model type
        stream text: the stream that `census` has of it
        norm_place text?: before, behind or inside the branch, after the addition
        layers int: of both models
        width int: of the small model
        released_width int: of the wide one
        kept float: residual_last / residual_first of the small model, whose maps have the released size
        kept_wide float: the same of the model of the released width
        off float: distance of the two
        entered float: size of a number of the state that enters, root mean square, of the small model
        entered_wide float: the same of the wide one
        """,
        key="type",
        cells=False,
    )


NEEDS = "tables"
TABLES = ["census_layers"]


def measure(context: Context) -> list[dict[str, Any]]:
    """Return a row for each type that the census has at both sizes with equally many layers. The wide ones are measured by entries of
    `census_layers` with `size: wide`."""
    from rankfall.census.folded import compare_widths
    from rankfall.overview.census.measure import plain_rows

    table = context.table("census_layers")
    rows = [] if table is None else compare_widths(plain_rows(table))
    return [row | {"off": abs(row["kept"] - row["kept_wide"])} for row in rows]


CHARTS = (
    Chart(
        "census_wide",
        "What a small model keeps, and one of the released width",
        "Model types of the transformers library at initialisation: kept of the residual by a small model whose maps are as large as the "
        "released ones, and by one of the released width with as many layers.",
        "kept",
        "kept_wide",
        "kept by the small model",
        "kept at the released width",
        kind="points",
        line="type",
        choose=(),
        within=POSITIVE,
        place=77,
        study="rank",
    ),
)
