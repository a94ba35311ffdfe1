"""Upper bound on the number of n equal tokens that a network can distinguish, and the argument that decides it.

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

The count is that of `sight.py`. The argument is named by what changes the count.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from rankfall.design import Architecture
from rankfall.position.sight import Places, Sight, Undecided, layers, sight

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
    except Undecided as why:
        return Verdict(None, "undecided", str(why))
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
            said = "rows of weights sum to one constant and all values are equal, so all outputs are equal"
            return Verdict(1, "row sums", said)
        if exchangeable(plain):
            return Verdict(1, "exchange", "nothing depends on places, so exchanging two tokens changes nothing")
    if rows < final:
        return Verdict(
            rows, "reach", f"in {key.depth} layers the mask carries what differs no farther; {final} rows if deeper"
        )
    if rows < n:
        if rows == -(-n // 2) and (colours == colours[::-1]).all():
            return Verdict(
                rows, "reflection", "read backwards mask and terms are the same, so mirrored places are equal"
            )
        return Verdict(rows, "surroundings", "some places have surroundings that cannot be told apart at any depth")
    if count(layers(blank, DEEP)[-1]) < n:
        return Verdict(n, "sentinel", "a sentinel differs from the tokens, and how a place sees it tells where it is")
    if seen.fixed:
        return Verdict(n, "values", "what is added to values depends on places, so equal row sums do not help")
    by = [name for name, there in (("the mask", not seen.visible.all()), ("the scores", seen.scores.any())) if there]
    return Verdict(n, "free sums", f"row sums may differ, and {' and '.join(by)} make them differ from place to place")


def exchangeable(sight: Sight) -> bool:
    """Check whether all pairs of different positions look the same."""
    pairs = ~np.eye(len(sight.start), dtype=bool)
    return all(len(np.unique(part[pairs])) <= 1 for part in (sight.visible, sight.scores, sight.values))


def count(colours: Places) -> int:
    return len(np.unique(colours))
