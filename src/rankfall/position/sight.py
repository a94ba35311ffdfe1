"""Views of positions by the layers of an architecture, derived from the literals that its components declare.

ROWS of an attention or a normaliser says what rows of weights sum to. SEES of a position or a normaliser says what its numbers depend
on, and TOUCHES of a position where they enter. The mask and the sentinels are evaluated. Where a component does not declare what is
needed, nothing is assumed and `Undecided` names it. Components that act on each token alone (norms, MLPs, residuals, embedding) need no
declaration: they cannot distinguish equal tokens. A block declares TOKENWISE if it acts on each token alone apart from its attention.
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

SCORES = ("queries", "products", "scores")  # all of them act on the scores
ENTERS = ("states", *SCORES, "values")


class Undecided(Exception):
    """A component does not declare what the decision needs."""


def sight(design: Architecture, tokens: int) -> tuple[Sight, Places]:
    """Return what the layers see, and the positions of the n tokens among the T."""
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
        start = np.arange(total, dtype=np.int64)  # every position has its own vector
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
    """Return the positions of the tokens among the sentinels: those left after the sentinels are stripped."""
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
    """Return where the position enters -> labels (T, T) of the term that it adds."""
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
    """Return whether rows of weights may have different sums, and the labels (T, T) of a normaliser's factors by position."""
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
    """Return the declarations that the decision relies on: each literal with the component that declares it."""
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
    """Return labels (T, T) that are equal where a term with this dependence on positions is the same."""
    places = np.arange(total, dtype=np.int64)
    offset = places[:, None] - places
    if sees == "nothing":
        return np.zeros((total, total), dtype=np.int64)
    if sees == "distances":
        return np.abs(offset)
    if sees == "offsets":
        return offset + total - 1
    return np.arange(total * total, dtype=np.int64).reshape(total, total)
