"""Reproduction: every published number beside ours, with the deviation.

The published numbers are facts in files of the package: `report/published/values.csv`, each with its source, the table of
ours that has the same quantity and the rows to look at; and `report/published/rank_by_layer.csv`, curves by layer. Ours
are the mean over seeds of each seed's mean. A number that nothing in the run measures keeps its row, with nothing beside it.
"""

from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rankfall.errors import RankfallError

if TYPE_CHECKING:
    from pandas import DataFrame

TABLE = "reproduction"
NEEDS = "tables"
TABLES = ["paths", "circle", "path_counts", "model_residuals"]  # of these, what the run makes
DATA = ["report/published/values.csv", "report/published/rank_by_layer.csv"]
MODELS = {"BERT": "bert-base-cased", "ALBERT": "albert-base-v2", "XLNet": "xlnet-base-cased"}
NORM = "metric=composite;centre=mean"
SPREADS = 3.0  # a curve's point is reproduced if ours is within so many of its published deviations, over samples ...
CLOSE = 0.02  # ... or within this

Read = Callable[[str], "DataFrame | None"]


def reproduction(read: Read) -> list[dict[str, Any]]:
    """`read` gives a table, or None where the run does not make it."""
    return [row for value in published() for row in beside(value, read(value["table"]))]


def published() -> Iterator[dict[str, Any]]:
    """All published numbers, in one form."""
    folder = files("rankfall.report").joinpath("published")
    yield from table(folder.joinpath("values.csv")).to_dict("records")
    for point in table(folder.joinpath("rank_by_layer.csv")).itertuples():
        yield {
            "name": f"{point.model} {point.phase} {point.variant} layer {point.layer:02d}",
            "source": "paper",
            "place": "figure 2",
            "what": f"relative residual of {point.model}, {point.phase}, {point.variant}, after layer {point.layer}",
            "kind": "measured",
            "published": point.mean,
            "sense": "equal",
            "tolerance": max(CLOSE, SPREADS * point.std),
            "table": "model_residuals",
            "column": "value",
            "where": f"model={MODELS[point.model]};phase={point.phase};variant={point.variant};layer={point.layer};{NORM}",
            "by": "definition;text;dtype",
        }


def table(path: Any) -> "DataFrame":
    """A file of facts: commas, comments after #, every field there."""
    import pandas as pd

    with path.open(encoding="utf-8") as handle:
        return pd.read_csv(handle, comment="#", keep_default_na=False)


def beside(value: dict[str, Any], ours: "DataFrame | None") -> Iterator[dict[str, Any]]:
    """One row a setting of ours, or one row without ours."""
    kept = ("name", "source", "place", "what", "kind", "sense", "published", "tolerance")
    row = {name: value[name] for name in kept} | {
        "published": float(value["published"]),
        "tolerance": float(value["tolerance"]),
    }
    if ours is not None:
        ours = matching(ours, value)
        ours = ours[ours[value["column"]].notna()]
    if ours is None or not len(ours):
        yield row | {"setting": "", "ours": None, "deviation": None, "seeds": 0, "difference": None, "holds": None}
        return
    by = value["by"].split(";")
    for setting, part in ours.groupby(by, sort=True, dropna=False):
        seeds = part.groupby("seed", dropna=False)[value["column"]].mean() if "seed" in part else part[value["column"]]
        mean = float(seeds.mean())
        yield row | {
            "setting": ", ".join(f"{name}={one}" for name, one in zip(by, setting)),
            "ours": mean,
            "deviation": float(seeds.std(ddof=1)) if len(seeds) > 1 else None,
            "seeds": len(seeds),
            "difference": mean - row["published"],
            "holds": holds(mean, row["published"], value["sense"], row["tolerance"]),
        }


def matching(ours: "DataFrame", value: dict[str, Any]) -> "DataFrame":
    """Rows whose columns read as asked in `where`: `column=value;column=value`; of cells, only those that are done."""
    if "status" in ours:
        ours = ours[ours.status == "done"]
    for condition in value["where"].split(";"):
        column, _, wanted = condition.partition("=")
        missing = {column, value["column"], *value["by"].split(";")} - set(ours.columns)
        if missing:
            raise RankfallError(
                f"published value {value['name']!r}: table {value['table']} has no column {', '.join(sorted(missing))}"
            )
        ours = ours[ours[column].map(written) == wanted]
    return ours


def written(value: Any) -> str:
    """A cell of a table as the file of facts writes it: a nullable integer arrives as a float."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def holds(ours: float, published: float, sense: str, tolerance: float) -> bool:
    if sense == "equal":
        return abs(ours - published) <= tolerance
    return ours > published if sense == "above" else ours < published
