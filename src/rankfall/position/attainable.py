"""Best accuracy attainable under an architecture's mask.

Answers may be any function of the position and of the tokens that can reach it. In one layer a position reads what the mask lets it see;
in L layers, whatever L such steps reach. Sentinels take part in these steps but carry no input. The task's file says how often the best
such answers are right (`attainable`, `tasks/_dataset.py`). No network of this architecture is right more often in expectation. A small
or badly trained one is right less often.

Whether components keep to the mask is tested, since a normaliser over columns, or an attention that subtracts the mean of all values,
reads behind any mask. The test changes a token in one block with random weights. Only positions that read this token may change.
"""

import inspect
from dataclasses import replace
from functools import cache, partial

import numpy as np
import torch

from rankfall import components
from rankfall.components import facts_of
from rankfall.design import Architecture, Component
from rankfall.errors import describe_error
from rankfall.nets.network import Shape, build, sentinel_count
from rankfall.position.theory import Undecided, token_places, visible
from rankfall.tasks._dataset import Reads

CHANGED = 16  # tokens that are changed, spread over the sequence
LEAKS = 1e-6  # a change of an answer above this share of the largest change is no rounding
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
    except Undecided as error:
        return None, str(error)
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
    token_rows = token_places(architecture, length, total)
    if not sees.all() and length > 1:
        changes, changed = find_leak(replace(architecture, depth=1), length)
        hidden = ~sees[np.ix_(token_rows, token_rows)][:, changed].T
        if (changes[hidden] > LEAKS * changes.max()).any():
            mask = f"its mask {architecture.mask}"
            raise Undecided(f"a block of {architecture.name} reads tokens that {mask} hides, by one of its components")
    reached = np.eye(total, dtype=bool)
    for _ in range(architecture.depth):
        wider = reached @ sees
        if (wider == reached).all():
            break
        reached = wider
    return [frozenset(np.flatnonzero(row).tolist()) for row in reached[np.ix_(token_rows, token_rows)]]


@cache
def find_leak(architecture: Architecture, length: int) -> tuple[np.ndarray, list[int]]:
    """Return how much the answer of each position changes with each changed token, (C, T), and the positions of the C changed tokens.

    The block has random weights.
    """
    changed = sorted({round(place) for place in np.linspace(0, length - 1, CHANGED)})
    design = replace(architecture, embedding=Component("linear"), head=Component("regression"))
    try:
        network = build(design, Shape("vectors", "values", length, 4, 4), 1, torch.float64)
        network.initialise([0])
        draw = torch.Generator().manual_seed(0)
        inputs = torch.randn(1, 1, length, 4, generator=draw, dtype=torch.float64).repeat(1, 1 + len(changed), 1, 1)
        for sample, place in enumerate(changed, 1):
            inputs[0, sample, place] += 1.0
        with torch.no_grad():
            answers = network.features(inputs)[0]  # (samples, T, D)
    except Exception as error:  # anything that a component may raise
        raise Undecided(f"whether it keeps to its mask could not be tried: {describe_error(error)}") from None
    return (answers[1:] - answers[0]).abs().amax(-1).numpy(), changed
