"""The splits and metrics that training.parquet has for a cell.

Components of this package are listed here, not by a fact in their files, since a new fact would make all their networks stale. A user's
task may name any split and a user's objective any metric, so nothing is known about such cells before they are computed.
"""

from collections.abc import Callable, Mapping
from typing import Any

from rankfall.design import Task, Training

RIGHT = ("loss", "accuracy")
METRICS = {"classes": RIGHT, "prefixes": RIGHT, "masked_tokens": RIGHT, "values": ("loss",)}  # of objectives
CONSTANT = ("even_tokens",)  # tasks with a constant answer: objectives of classes report two more accuracies
TOLD_APART = ("accuracy_constant", "accuracy_informative")
MORE: Mapping[str, Callable[[Mapping[str, Any]], list[str]]] = {  # splits of tasks besides train and test
    "masked_text": lambda options: [] if options["longer"] is None else ["longer"],
    "probe": lambda options: [f"length {n}" for n in options["lengths"] if n != options["length"]],
}
# Tasks without further splits.
PLAIN = ("circle", "convex_hull", "even_tokens", "far_token", "memorization", "places", "sorting")


def graded_pairs(task: Task, training: Training) -> list[tuple[str, str]] | None:
    """Return the (split, metric) pairs of a cell's rows, or None if unknown. An untrained network is not evaluated on `train`."""
    name, metrics = task.task.name, METRICS.get(training.objective.name)
    if metrics is None or name not in (*MORE, *PLAIN):
        return None
    splits = ["train"] * bool(training.epochs) + ["test", *(MORE[name](task.task.options) if name in MORE else ())]
    told = TOLD_APART if name in CONSTANT else ()
    return [(split, metric) for split in splits for metric in (*metrics, *told)]
