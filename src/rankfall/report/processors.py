"""Kinds of processors on which rows were computed. Processors of one kind compute the same bits; two kinds may differ.

The column `processor` has the model's name and what distinguishes kinds (family, model, vectors). If a cell was measured on another
processor than it was trained on, that one follows after `; measured on`.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rankfall.annotations import DataFrame

MEASURED = "; measured on "


def join_processors(trained: str | None, measured: str | None) -> str | None:
    """Return the text of the column for the processors that trained and measured a cell."""
    if trained is None or measured is None or measured == trained:
        return trained or measured
    return f"{trained}{MEASURED}{measured}"


def find_kinds(column: Iterable[Any]) -> list[str]:
    """Return the kinds in the column, sorted, without processors that were not recorded."""
    texts = {text for text in column if isinstance(text, str)}
    processors = {processor for text in texts for processor in text.split(MEASURED)}
    # Without the model's name, which may differ although the bits do not.
    return sorted({processor.partition(", ")[2] or processor for processor in processors})


def describe_mixture(rows: DataFrame) -> str:
    """Return a clause for rows that are shown as one mean; empty if one kind of processor, or no recorded kind, computed them."""
    kinds = find_kinds(rows["processor"].unique()) if "processor" in rows else []
    return f"from {len(kinds)} kinds of processors ({'; '.join(kinds)})" if len(kinds) > 1 else ""


def find_kinds_of_run(tables: Path) -> list[str]:
    """Return the kinds in a run's tables: those in rows of cells, and those in the metadata of measures that need no cells."""
    import pyarrow.parquet as pq

    from rankfall.report.tables import about_of, open_table

    processors: set[str | None] = set()
    for path in sorted(tables.glob("*.parquet")):
        schema = open_table(path, pq.read_schema)
        processors.add(about_of(schema).get("processor"))
        if path.stem == "cells" and "processor" in schema.names:
            processors.update(pq.read_table(path, columns=["processor"])["processor"].unique().to_pylist())
    return find_kinds(processors)


def describe_difference(first: Path, second: Path) -> str:
    """Return a line on two runs that were computed on different kinds of processors; empty if the kinds are equal or not recorded."""
    kinds = [find_kinds_of_run(run / "tables") for run in (first, second)]
    if kinds[0] == kinds[1] or not all(kinds):
        return ""
    return f"{'; '.join(kinds[0])} in the first run, {'; '.join(kinds[1])} in the second"
