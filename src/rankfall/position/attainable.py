"""Best accuracy attainable under an architecture's mask.

Answers may be any function of the position and of the tokens that can reach it. In one layer a position reads what the mask lets it see;
in L layers, whatever L such steps reach. Sentinels take part in these steps but carry no input. The task's file says how often the best
such answers are right (`attainable`, `tasks/_dataset.py`). No network of this architecture is right more often in expectation. A small
or badly trained one is right less often.
"""

import inspect
from functools import cache, partial

import numpy as np

from rankfall import components
from rankfall.components import facts_of
from rankfall.design import Architecture, Component
from rankfall.nets.network import sentinel_count
from rankfall.position.sight import Undecided, token_places, visible
from rankfall.tasks._dataset import Reads

OVER_TOKENS = ("column",)  # norms over the tokens of a sample, through which every position reads all tokens


@cache
def attainable(task: Component, architecture: Architecture) -> tuple[float | None, str]:
    """Return (accuracy, ""), or (None, reason) if it is not known."""
    return _ask_task(task, partial(find_reads, architecture))


@cache
def attainable_unmasked(task: Component) -> float | None:
    """Return the attainable accuracy when every position reads all tokens."""
    return _ask_task(task, lambda length: [frozenset(range(length))] * length)[0]


def _ask_task(task: Component, reads: Reads) -> tuple[float | None, str]:
    best_of = getattr(inspect.getmodule(components.load("task", task.name)), "attainable", None)
    if best_of is None:
        return None, f"task {task.name} has no function `attainable`"
    try:
        best = best_of(reads, **task.options)
    except Undecided as why:
        return None, str(why)
    return (None, best) if isinstance(best, str) else (float(best), "")


def find_reads(architecture: Architecture, length: int) -> list[frozenset[int]]:
    """Return, for each of the T positions, the positions whose tokens it reads through all layers."""
    if architecture.mask is None:
        raise Undecided(
            f"attention {architecture.attention.name} ignores masks, so the tokens that it reads are not known"
        )
    if architecture.block.name != "attention" and not facts_of("block", architecture.block.name).get("TOKENWISE"):
        raise Undecided(f"block {architecture.block.name} does not say that it acts on each token alone (TOKENWISE)")
    total = length + sentinel_count(architecture.sentinels.name)
    sees = visible(architecture, total) | np.eye(total, dtype=bool)  # (T', T'), with sentinels
    if architecture.position.name == "none" and len(set(sees.sum(1))) < total:
        raise Undecided("without positions a token need not know its place")
    if architecture.norm.name in OVER_TOKENS:
        sees = np.ones_like(sees)
    reached = np.eye(total, dtype=bool)
    for _ in range(architecture.depth):
        wider = reached @ sees
        if (wider == reached).all():
            break
        reached = wider
    here = token_places(architecture, length, total)
    return [frozenset(np.flatnonzero(row).tolist()) for row in reached[np.ix_(here, here)]]
