"""Kinds of processors that rows were computed on: numbers of one kind are the same bits, of two kinds they may differ.

A row's column `processor` has the model's name, what tells kinds apart (family, model, vectors), and where a cell was measured on
another processor than it was trained on, that one behind `; measured on`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

MEASURED = "; measured on "


def join_processors(trained: str | None, measured: str | None) -> str | None:
    """One text of the processor that trained a cell and of the one that measured it."""
    if trained is None or measured is None or measured == trained:
        return trained or measured
    return f"{trained}{MEASURED}{measured}"


def find_kinds(processors: Iterable[Any]) -> list[str]:
    """The kinds among texts of the column, sorted; what was not recorded is none."""
    texts = {text for text in processors if isinstance(text, str)}
    return sorted({kind_of(one) for text in texts for one in text.split(MEASURED)})


def kind_of(processor: str) -> str:
    """A processor's text without the model's name, which may differ where bits do not."""
    return processor.partition(", ")[2] or processor


def describe_mixture(rows: pd.DataFrame) -> str:
    """A clause for rows that are shown as one mean: empty where one kind of processor computed them, or where that is not recorded."""
    kinds = find_kinds(rows["processor"].unique()) if "processor" in rows else []
    return f"from {len(kinds)} kinds of processors ({'; '.join(kinds)})" if len(kinds) > 1 else ""


def find_kinds_of_run(tables: Path) -> list[str]:
    """The kinds that a run's tables say: of its cells, in their rows, and of measures that need no cells, in their files' metadata."""
    import pyarrow.parquet as pq

    from rankfall.report.tables import about_of, opened

    found: set[str | None] = set()
    for path in sorted(tables.glob("*.parquet")):
        schema = opened(path, pq.read_schema)
        found.add(about_of(schema).get("processor"))
        if path.stem == "cells" and "processor" in schema.names:
            found.update(pq.read_table(path, columns=["processor"])["processor"].unique().to_pylist())
    return find_kinds(found)


def describe_difference(one: Path, other: Path) -> str:
    """A line on two runs whose tables were computed on other kinds of processors; empty where the kinds are the same or not recorded."""
    kinds = [find_kinds_of_run(run / "tables") for run in (one, other)]
    if kinds[0] == kinds[1] or not all(kinds):
        return ""
    return f"{'; '.join(kinds[0])} in the first run, {'; '.join(kinds[1])} in the second"
