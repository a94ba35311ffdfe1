"""Draw what happens to a checkout from a seed. The same seed gives the same steps.

A step with nothing to do, such as a kill where nothing runs, does nothing.
"""

import random
from dataclasses import dataclass, field
from typing import Any

from small_grid import CONFIGS, EDITS

KINDS = {  # step -> its frequency during a run, and otherwise
    "start": (1, 6),  # a run in the background, until some of its jobs have finished
    "run": (0, 2),  # a run to its end
    "other": (4, 0),  # another configuration in the same checkout, which is refused
    "dry": (3, 1),
    "kill": (4, 0),
    "edit": (3, 4),
    "undo": (4, 1),  # an edit that is taken back at once
    "gc": (4, 2),
    "forget": (0, 2),  # what Snakemake remembers
    "remove": (2, 4),
}
LOST = ("table", "table", "work", "work", "figure", "stack", "data", "rows")


@dataclass(frozen=True)
class Step:
    kind: str
    detail: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join([self.kind, *(f"{name}={value}" for name, value in self.detail.items())])


@dataclass(frozen=True)
class Interleaving:
    """A state to begin with, steps, and the configuration of the last run."""

    seed: int
    begins: str  # `nothing`, or the configuration of a finished run
    steps: tuple[Step, ...]
    ends: str  # the configuration of the last run
    again: bool  # whether a run from the store alone follows

    def __str__(self) -> str:
        lines = [f"seed {self.seed}, from {self.begins}:", *(f"  {step}" for step in self.steps)]
        return "\n".join([*lines, f"  at last {self.ends}{', and once more from the store' * self.again}"])


def draw_interleaving(seed: int) -> Interleaving:
    """Draw an interleaving. Most steps happen during a run, mostly of the configuration that runs last."""
    dice = random.Random(seed)
    begins = dice.choice(("nothing", *CONFIGS))
    steps: list[Step] = []
    live, last = False, begins if begins in CONFIGS else dice.choice(list(CONFIGS))
    for number in range(dice.randint(3, 6)):
        kind = dice.choices(list(KINDS), [often[not live] for often in KINDS.values()])[0]
        if number == 0 and dice.random() < 0.5:
            kind = "start"
        steps.append(Step(kind, _draw_detail(kind, dice, last if begins != "nothing" or number else "")))
        live = kind == "start" or (live and kind != "kill")
        if kind in ("start", "run"):
            last = steps[-1].detail["config"]
    ends = last if dice.random() < 0.8 else dice.choice(list(CONFIGS))
    return Interleaving(seed, begins, tuple(steps), ends, dice.random() < 0.5)


def _draw_detail(kind: str, dice: random.Random, last: str) -> dict[str, Any]:
    """Draw the details of a step. `last`: the configuration that ran last, for which there is less to do than for another."""
    config = dice.choice([name for name in CONFIGS if name != last or dice.random() < 0.3] or [last])
    where = round(dice.random(), 3)  # chooses among the files of that moment
    if kind == "start":
        jobs = dice.choice((0, 0, 1, 1, 1, 2, 3, 4, 6))
        return {"config": config, "jobs": jobs, "seconds": round(dice.uniform(0, 0.7), 2)}
    if kind in ("run", "other", "dry", "gc"):
        return {"config": config}
    if kind in ("edit", "undo"):
        edit: dict[str, Any] = {"file": dice.choice(list(EDITS))}
        return edit if kind == "edit" else edit | {"seconds": round(dice.choice((0.05, 0.2, 0.5, 0.9)), 2)}
    if kind == "remove":
        return {"what": dice.choice(LOST), "where": where, "all": dice.random() < 0.3}
    return {}
