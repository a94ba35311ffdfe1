"""What a reader sees of real models, and of the measurements of one."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from rankfall.annotations import DataFrame
from rankfall.report.looks import label

# what else than model and phase measurements differ in, and how each is written
BESIDE: dict[str, Callable[[Any], str]] = {
    "definition": str, "text": "text {}".format, "tokenizer": "tokenizer {}".format, "length": "{} tokens".format, "dtype": str,
    "revision": "revision {}".format,
}  # fmt: skip


def short(model: str) -> str:
    """The last part of a hub name or folder."""
    return model.rstrip("/").rsplit("/", 1)[-1]


def name_models(models: Iterable[str]) -> dict[str, str]:
    """Of each model its label, or the last part of its name; the whole name where another model here ends like it."""
    each = list(dict.fromkeys(models))
    often = Counter(map(short, each))
    return {model: own_label(model, alone=often[short(model)] == 1) for model in each}


def own_label(model: str, *, alone: bool) -> str:
    """A label may be given to the whole name or to its last part, which is of one model only if that is `alone`."""
    if label(model) != model or not alone:
        return label(model)
    return label(short(model))


def name_measurements(table: DataFrame, axis: str = "") -> list[str]:
    """Of each row model and phase, the definition where that is not the usual one, and whatever else one model and phase have several of:
    different measurements never have one name. `axis`: what an axis of the figure shows, so that it tells no lines apart."""
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
        about = [BESIDE[name](row[name]) for name in differ if row[name] == row[name] and row[name] is not None]
        names.append(f"{models[row['model']]}, {row['phase']}" + (f" ({', '.join(about)})" if about else ""))
    return names
