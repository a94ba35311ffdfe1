"""Upper bound on the number of n equal tokens that a network can distinguish, from the literals that its components declare.

ROWS of an attention or a normaliser says what rows of weights sum to. SEES of a position or a normaliser says what its numbers depend
on, and TOUCHES of a position where they enter. The mask and the sentinels are evaluated. Where a component does not declare what is
needed, nothing is assumed and `Undecided` names it. Components that act on each token alone (norms, MLPs, residuals, embedding) need no
declaration: they cannot distinguish equal tokens. A block declares TOKENWISE if it acts on each token alone apart from its attention.

Colour refinement of the sequence gives an upper bound on the number of positions that a layer can distinguish.
Positions that must have equal states have one colour. At the start all n equal tokens share a colour and each sentinel has its own. If
the position encoding acts on the states, every position has its own colour. A layer gives position i

    o_i = sum_j a(c_i, c_j, s_ij) (v(c_j) + r(t_ij)),

where c are colours, s_ij is what the scores see of the positions i and j (i - j, say), t_ij labels the term added to values, and j runs
over the positions that the mask lets i see. So o_i, and with its previous state the new state of i, is a function of c_i and of the
multiset of (c_j, s_ij, t_ij): positions with equal c_i and equal multisets stay equal, whatever the weights are. If rows of a sum to one
constant and all values that i sees are equal, o_i is that constant times this value, and the weights do not matter.

So the number of colours is an upper bound on the number of distinct rows, for all weights. Almost all weights attain it unless the
functions a, v, r are special. The measure `probe` compares the two. The argument that decides is named by what changes the count:

    row sums      rows of weights sum to one constant and all values are equal, so all outputs are (Luo et al. 2022, theorem 2)
    exchange      nothing in the network depends on positions: exchanging two tokens changes nothing
    reflection    mask and terms are the same when the sequence is read backwards, so mirrored positions are equal: ceil(n / 2) rows
    surroundings  some positions have surroundings that cannot be distinguished, however deep the network
    reach         a layer carries a difference (at the ends, at a sentinel) only as far as its mask: more depth, more rows
    states        every position has its own vector: n rows
    values        the term added to values depends on positions: n rows although rows of weights sum to one
    sentinel      a sentinel is a token that differs: n rows, which there would not be without it
    free sums     row sums of weights may differ, and mask or scores make them differ: n rows
    undecided     a component does not declare what is needed
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rankfall import components
from rankfall.components import facts_of
from rankfall.design import Architecture, Component
from rankfall.nets.network import make, sentinel_count
from rankfall.nets.primitives import Sizes

Places = NDArray[np.int64]


@dataclass(frozen=True)
class Sight:
    """The views that every layer of a network gives its T positions (sentinels included) of each other."""

    start: Places  # (T,) colours of the inputs of the first layer
    visible: NDArray[np.bool_]  # (T, T) the mask: True where i sees j
    scores: Places  # (T, T) labels: equal where weights depend on positions in the same way
    values: Places  # (T, T) labels: equal where the same term is added to values
    fixed: bool  # whether rows of weights sum to one constant

    def among(self, places: Places) -> "Sight":
        """Return the sight restricted to some of the positions."""
        pairs = np.ix_(places, places)
        return Sight(self.start[places], self.visible[pairs], self.scores[pairs], self.values[pairs], self.fixed)


def refine(sight: Sight, colours: Places) -> Places:
    """Return the colours (T,) after one more layer."""
    # (T, T): the value that j offers to i
    value = join_labels(np.broadcast_to(colours, sight.visible.shape), sight.values)
    seen = join_labels(value, sight.scores)
    hidden = seen.max() + 1
    rows = np.sort(np.where(sight.visible, seen, hidden), axis=1)  # (T, T) multisets
    if sight.fixed:
        lowest = np.where(sight.visible, value, value.max() + 1).min(1)
        highest = np.where(sight.visible, value, -1).max(1)
        alone = lowest == highest
        rows[alone] = -1
        rows[alone, 0] = -2 - lowest[alone]
    return np.unique(np.column_stack([colours, rows]), axis=0, return_inverse=True)[1].reshape(-1)


def join_labels(first: Places, second: Places) -> Places:
    """Return one label for each pair of labels."""
    return first * (second.max() + 1) + second


def layers(sight: Sight, depth: int) -> list[Places]:
    """Return the colours at layers 0 .. depth, or at fewer layers if they no longer change."""
    by_depth = [np.unique(sight.start, return_inverse=True)[1].reshape(-1)]
    while len(by_depth) <= depth:
        after = refine(sight, by_depth[-1])
        if after.max() == by_depth[-1].max():  # colours are only ever split
            break
        by_depth.append(after)
    return by_depth


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
    ones = dict.fromkeys(("members", "heads", "mlp_width", "size_in", "size_out"), 1)
    sizes = Sizes(length=total, depth=design.depth, width=design.width, head_width=design.width, **ones)
    sentinels = make("sentinels", design.sentinels, sizes)
    if sentinels is None:
        return np.arange(tokens)
    places = torch.arange(total).view(1, 1, total, 1).expand(-1, -1, -1, design.width)
    kept = sentinels.strip(places)[0, 0, :, 0].numpy()
    if len(kept) != tokens:
        raise Undecided(f"sentinels {design.sentinels.name!r} keep {len(kept)} of {tokens} tokens")
    return np.asarray(kept, dtype=np.int64)


def visible(design: Architecture, total: int) -> Any:
    allowed = components.bound("mask", design.mask or Component("none"))(total)
    return np.ones((total, total), dtype=bool) if allowed is None else allowed.numpy()


def terms(design: Architecture, total: int) -> dict[str, Places]:
    """Return where the position enters -> labels (T, T) of the term that it adds."""
    facts = facts_of("position", design.position.name)
    touches, sees = facts.get("TOUCHES"), facts.get("SEES")
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
    facts = facts_of("normaliser", design.normaliser.name)
    if "ROWS" not in facts:
        raise Undecided(f"the normaliser {design.normaliser} does not say what its rows sum to (ROWS)")
    sees = facts.get("SEES", "nothing")
    return facts["ROWS"] == "free", None if sees == "nothing" else labels(sees, total)


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


DEEP = 10**6  # more layers than it takes until colours no longer change


@dataclass(frozen=True)
class Verdict:
    """Largest possible number of distinct rows; None where theory is undecided."""

    rows: int | None
    argument: str
    reason: str


def decide(design: Architecture, tokens: int) -> Verdict:
    """Return the verdict for n equal tokens."""
    try:
        seen, here = sight(design, tokens)
    except Undecided as error:
        return Verdict(None, "undecided", str(error))
    return verdict(Key(seen, here, design.depth))


class Key:
    """Cache key of a verdict: all that it depends on. Many architectures share a key."""

    def __init__(self, seen: Sight, here: Places, depth: int) -> None:
        self.seen, self.here, self.depth = seen, here, depth
        parts = (seen.start, seen.visible, seen.scores, seen.values, here)
        self.content = (*(part.tobytes() for part in parts), len(seen.start), seen.fixed, depth)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.content == other.content

    def __hash__(self) -> int:
        return hash(self.content)


@lru_cache(maxsize=4096)
def verdict(key: Key) -> Verdict:
    seen, here, n = key.seen, key.here, len(key.here)
    colours = layers(seen, key.depth)[-1][here]
    rows, final = count(colours), count(layers(seen, DEEP)[-1][here])
    plain = seen.among(here)
    blank = replace(plain, start=np.zeros_like(plain.start))  # the sequence without sentinels
    if len(set(seen.start[here])) > 1:
        return Verdict(rows, "states", "every place has a vector of its own in its state")
    if rows == 1 and final == 1:
        others = np.setdiff1d(np.arange(len(seen.start)), here)
        if seen.fixed and not plain.values.any() and not seen.visible[np.ix_(here, others)].any():
            reason = "rows of weights sum to one constant and all values are equal, so all outputs are equal"
            return Verdict(1, "row sums", reason)
        if exchangeable(plain):
            return Verdict(1, "exchange", "nothing depends on places, so exchanging two tokens changes nothing")
    if rows < final:
        reason = f"in {key.depth} layers the mask carries what differs no farther; {final} rows if deeper"
        return Verdict(rows, "reach", reason)
    if rows < n:
        if rows == -(-n // 2) and (colours == colours[::-1]).all():
            reason = "read backwards mask and terms are the same, so mirrored places are equal"
            return Verdict(rows, "reflection", reason)
        return Verdict(rows, "surroundings", "some places have surroundings that cannot be told apart at any depth")
    if count(layers(blank, DEEP)[-1]) < n:
        return Verdict(n, "sentinel", "a sentinel differs from the tokens, and how a place sees it tells where it is")
    if seen.fixed:
        return Verdict(n, "values", "what is added to values depends on places, so equal row sums do not help")
    by = [
        name for name, differs in (("the mask", not seen.visible.all()), ("the scores", seen.scores.any())) if differs
    ]
    return Verdict(n, "free sums", f"row sums may differ, and {' and '.join(by)} make them differ from place to place")


def exchangeable(sight: Sight) -> bool:
    """Check whether all pairs of different positions look the same."""
    pairs = ~np.eye(len(sight.start), dtype=bool)
    return all(len(np.unique(part[pairs])) <= 1 for part in (sight.visible, sight.scores, sight.values))


def count(colours: Places) -> int:
    return len(np.unique(colours))
