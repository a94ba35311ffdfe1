"""Kinds of processors that rows were computed on: numbers of one kind are the same bits, of two kinds they may differ.

A row's column `processor` has the model's name, what tells kinds apart (family, model, vectors), and where a cell was measured on
another processor than it was trained on, that one behind `; measured on`.
"""

from collections.abc import Iterable
from typing import Any

from rankfall.annotations import DataFrame

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


def describe_mixture(rows: DataFrame) -> str:
    """A clause for rows that are shown as one mean: empty where one kind of processor computed them, or where that is not recorded."""
    kinds = find_kinds(rows["processor"].unique()) if "processor" in rows else []
    return f"from {len(kinds)} kinds of processors ({'; '.join(kinds)})" if len(kinds) > 1 else ""
