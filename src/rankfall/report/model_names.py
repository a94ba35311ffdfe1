"""Names of real models and of their measurements for readers."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from rankfall.annotations import DataFrame
from rankfall.errors import RankfallError
from rankfall.report.looks import label

# Columns besides model and phase in which measurements differ -> how a value is written.
BESIDE: dict[str, Callable[[Any], str]] = {
    "definition": str, "text": "text {}".format, "tokenizer": "tokenizer {}".format, "length": "{} tokens".format, "dtype": str,
    "revision": "revision {}".format,
}  # fmt: skip


def short(model: str) -> str:
    """Return the last part of a hub name or folder."""
    return model.rstrip("/").rsplit("/", 1)[-1]


def name_models(models: Iterable[str]) -> dict[str, str]:
    """Return model -> its label, or the label of the last part of its name; the whole name if another of these models has the same last
    part."""
    names = list(dict.fromkeys(models))
    counts = Counter(map(short, names))
    return {
        name: label(name) if label(name) != name or counts[short(name)] > 1 else label(short(name)) for name in names
    }


def name_measurements(table: DataFrame, axis: str = "") -> list[str]:
    """Return a name for each row: model and phase, the definition if it is not the default, and the columns in which measurements of a
    model and phase differ, so that different measurements have different names. `axis`: the column on an axis of the figure, which does
    not distinguish lines."""
    models = name_models(table.model)
    varied = [
        name
        for name in BESIDE
        if name in table and name != axis and (table.groupby(["model", "phase"])[name].nunique(dropna=False) > 1).any()
    ]
    names = []
    for row in table.to_dict("records"):
        differ = [name for name in varied if name != "definition"]
        if row.get("definition", "clean") != "clean":
            differ = ["definition", *differ]
        details = [BESIDE[name](row[name]) for name in differ if row[name] == row[name] and row[name] is not None]
        names.append(f"{models[row['model']]}, {row['phase']}" + (f" ({', '.join(details)})" if details else ""))
    return names


def select_models(table: DataFrame, figure: str, models: list[str] | None) -> DataFrame:
    """Return the rows of these models, or of all if there are none; a model that was not measured is an error."""
    measured = sorted(table.model.unique())
    for model in models or []:
        if model not in measured:
            raise RankfallError(
                f"figure {figure}: model {model} was not measured; there is: {', '.join(measured) or 'nothing'}"
            )
    return table[table.model.isin(models)] if models else table
