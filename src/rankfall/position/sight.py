"""From an architecture to what its layers see of places, by the literals that its components declare.

ROWS of an attention or a normaliser says what rows of weights sum to, SEES of a position or a normaliser what its numbers depend on,
TOUCHES of a position where they enter. The mask and the sentinels are asked themselves. Where a component does not say, nothing is
assumed: `Undecided` names it. What acts on each token alone (norms, MLPs, residuals, embedding) only has to be that: it cannot
tell apart what is equal. A block says TOKENWISE if, but for its attention, it acts on each token alone.
"""

from typing import Any

import numpy as np
import torch

from rankfall import components
from rankfall.components import facts_of
from rankfall.design import Architecture, Component
from rankfall.nets.network import make, sentinel_count
from rankfall.nets.primitives import Sizes
from rankfall.position.refinement import Places, Sight, join_labels

SCORES = ("queries", "products", "scores")  # all of them end in the scores
ENTERS = ("states", *SCORES, "values")


class Undecided(Exception):
    """A component does not say what the decision needs."""


def sight(design: Architecture, tokens: int) -> tuple[Sight, Places]:
    """What the layers see, and the places of the n tokens among the T."""
    if design.block.name != "attention" and not facts_of("block", design.block.name).get("TOKENWISE"):
        raise Undecided(f"the block {design.block.name!r} does not say that it acts on each token alone (TOKENWISE)")
    total = tokens + sentinel_count(design.sentinels.name)
    here = token_places(design, tokens, total)
    start = np.zeros(total, dtype=np.int64)
    others = np.ones(total, dtype=bool)
    others[here] = False
    start[others] = 1 + np.arange(others.sum())
    entering = terms(design, total)
    if "states" in entering:
        start = np.arange(total, dtype=np.int64)  # every place has its own vector
    free, factors = row_sums(design, total)
    scores = np.zeros((total, total), dtype=np.int64)
    for more in (*(entering[place] for place in SCORES if place in entering), factors):
        if more is not None:
            scores = join_labels(scores, more)
    _, flat = np.unique(scores, return_inverse=True)
    scores = flat.reshape(total, total)
    values = entering.get("values", np.zeros((total, total), dtype=np.int64))
    return Sight(start, visible(design, total), scores, values, not free), here


def token_places(design: Architecture, tokens: int, total: int) -> Places:
    """Where the tokens lie among the sentinels: what is left after these are cut off again."""
    sizes = Sizes(
        members=1,
        length=total,
        depth=design.depth,
        width=design.width,
        heads=1,
        head_width=design.width,
        mlp_width=1,
        size_in=1,
        size_out=1,
    )
    sentinels = make("sentinels", design.sentinels, sizes)
    if sentinels is None:
        return np.arange(tokens)
    places = torch.arange(total).view(1, 1, total, 1).expand(-1, -1, -1, design.width)
    left = sentinels.strip(places)[0, 0, :, 0].numpy()
    if len(left) != tokens:
        raise Undecided(f"sentinels {design.sentinels.name!r} keep {len(left)} of {tokens} tokens")
    return np.asarray(left, dtype=np.int64)


def visible(design: Architecture, total: int) -> Any:
    allowed = components.bound("mask", design.mask or Component("none"))(total)
    return np.ones((total, total), dtype=bool) if allowed is None else allowed.numpy()


def terms(design: Architecture, total: int) -> dict[str, Places]:
    """Where the position enters -> labels (T, T) of what it adds."""
    said = facts_of("position", design.position.name)
    touches, sees = said.get("TOUCHES"), said.get("SEES")
    if touches is None or sees is None:
        lacking = "where it acts (TOUCHES)" if touches is None else "what of places it depends on (SEES)"
        raise Undecided(f"the position {design.position} does not say {lacking}")
    if unknown := set(touches) - set(ENTERS):
        raise Undecided(f"the position {design.position} acts on {', '.join(sorted(unknown))}")
    if "states" in touches and sees != "places":
        raise Undecided(f"the position {design.position} acts on states, but sees {sees}")
    return {place: labels(sees, total) for place in touches}


def row_sums(design: Architecture, total: int) -> tuple[bool, Places | None]:
    """Whether rows of weights have sums that may differ, and labels (T, T) of the factors that a normaliser has for places."""
    rows = facts_of("attention", design.attention.name).get("ROWS")
    if rows is None:
        raise Undecided(f"the attention {design.attention} does not say what its rows sum to (ROWS)")
    if rows != "normaliser":
        return rows == "free", None
    assert design.normaliser is not None
    said = facts_of("normaliser", design.normaliser.name)
    if "ROWS" not in said:
        raise Undecided(f"the normaliser {design.normaliser} does not say what its rows sum to (ROWS)")
    sees = said.get("SEES", "nothing")
    return said["ROWS"] == "free", None if sees == "nothing" else labels(sees, total)


def declarations(design: Architecture) -> list[str]:
    """What the decision takes on trust: each literal with the component that says it."""
    parts = [("attention", design.attention, ("ROWS",)), ("position", design.position, ("TOUCHES", "SEES"))]
    if facts_of("attention", design.attention.name).get("ROWS") == "normaliser":
        assert design.normaliser is not None
        parts[0] = ("normaliser", design.normaliser, ("ROWS", "SEES"))
    return [
        f"{name} = {facts_of(kind, component.name)[name]!r} of {kind} {str(component)!r}"
        for kind, component, names in parts
        for name in names
        if name in facts_of(kind, component.name)
    ]


def labels(sees: str, total: int) -> Places:
    """(T, T), equal where a term that sees so much of places is the same."""
    places = np.arange(total, dtype=np.int64)
    offset = places[:, None] - places
    if sees == "nothing":
        return np.zeros((total, total), dtype=np.int64)
    if sees == "distances":
        return np.abs(offset)
    if sees == "offsets":
        return offset + total - 1
    return np.arange(total * total, dtype=np.int64).reshape(total, total)
