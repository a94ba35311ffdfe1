"""Announcement of a whole run to the store. Its jobs announce their own parts, but none is made between two jobs."""

from pathlib import Path

from rankfall.run.plan.build import Plan
from rankfall.run.store.announced import announce


def announce_plan(owner: object, plan: Plan, results: Path | str) -> Path | None:
    """Keep `rankfall gc` from all that a plan needs, for as long as `owner` is in use."""
    measures: dict[str, set[str]] = {}
    for measure in plan.measures.values():
        measures.setdefault(measure.component.name, set()).add(measure.key)
    return announce(owner, Path(results) / "store", plan.cells, measures)
