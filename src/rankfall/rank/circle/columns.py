"""circle.parquet: the points that a network reaches when it is applied repeatedly to its own output."""

from rankfall.report.schema import Column, Table


def circle() -> Table:
    """Declare the table: one row per step and token."""
    return Table(
        "circle",
        "a cell x step x token of the roll-out",
        (
            Column("step", "int", "applications of the network so far; at 0 the points are opposite on the circle"),
            Column("token", "int", "which of the two points"),
            Column("x", "float", "where it is; NaN once it is beyond all numbers", nan=True),
            Column("y", "float", "where it is", nan=True),
            Column("distance", "float", "from the other point", nan=True),
            Column("error", "float", "from the place on the circle where it should be after so many steps", nan=True),
        ),
        key=("step", "token"),
    )
