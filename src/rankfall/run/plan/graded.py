"""What training.parquet will have of a cell: its splits, and the metrics of each.

A component of this package is known here, not by a fact in its file: a fact there would make every network of it stale. A user's task may
name any split and a user's objective any metric, so of such cells nothing is known before they are computed.
"""

from collections.abc import Callable, Mapping
from typing import Any

from rankfall.design import Task, Training

RIGHT = ("loss", "accuracy")
METRICS = {"classes": RIGHT, "prefixes": RIGHT, "masked_tokens": RIGHT, "values": ("loss",)}  # of objectives
CONSTANT = ("even_tokens",)  # tasks with a constant answer, on which the objectives of classes tell accuracy apart
TOLD_APART = ("accuracy_constant", "accuracy_informative")
MORE: Mapping[str, Callable[[Mapping[str, Any]], list[str]]] = {  # splits of tasks beside train and test
    "masked_text": lambda options: [] if options["longer"] is None else ["longer"],
    "probe": lambda options: [f"length {n}" for n in options["lengths"] if n != options["length"]],
}
PLAIN = ("circle", "convex_hull", "even_tokens", "far_token", "memorization", "places", "sorting")  # tasks without


def graded_pairs(task: Task, training: Training) -> list[tuple[str, str]] | None:
    """(split, metric) of a cell's rows; None where that is not known. A network that is not trained is not asked about `train`."""
    name, metrics = task.task.name, METRICS.get(training.objective.name)
    if metrics is None or name not in (*MORE, *PLAIN):
        return None
    splits = ["train"] * bool(training.epochs) + ["test", *(MORE[name](task.task.options) if name in MORE else ())]
    told = TOLD_APART if name in CONSTANT else ()
    return [(split, metric) for split in splits for metric in (*metrics, *told)]
