"""Kinds of processors on which the tables of a run were computed, and how two runs differ in them."""

from pathlib import Path

from rankfall.report.processors import find_kinds


def find_kinds_of_run(tables: Path) -> list[str]:
    """Return the kinds in a run's tables: those in rows of cells, and those in the metadata of measures that need no cells."""
    import pyarrow.parquet as pq

    from rankfall.report.tables import about_of, open_table

    found: set[str | None] = set()
    for path in sorted(tables.glob("*.parquet")):
        schema = open_table(path, pq.read_schema)
        found.add(about_of(schema).get("processor"))
        if path.stem == "cells" and "processor" in schema.names:
            found.update(pq.read_table(path, columns=["processor"])["processor"].unique().to_pylist())
    return find_kinds(found)


def describe_difference(one: Path, other: Path) -> str:
    """Return a line on two runs that were computed on different kinds of processors; empty if the kinds are equal or not recorded."""
    kinds = [find_kinds_of_run(run / "tables") for run in (one, other)]
    if kinds[0] == kinds[1] or not all(kinds):
        return ""
    return f"{'; '.join(kinds[0])} in the first run, {'; '.join(kinds[1])} in the second"
