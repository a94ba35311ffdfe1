"""Upper bound on the number of positions that a layer can distinguish, by colour refinement of the sequence.

Positions that must have equal states have one colour. At the start all n equal tokens share a colour and each sentinel has its own. If
the position encoding acts on the states, every position has its own colour. A layer gives position i

    o_i = sum_j a(c_i, c_j, s_ij) (v(c_j) + r(t_ij)),

where c are colours, s_ij is what the scores see of the positions i and j (i - j, say), t_ij labels the term added to values, and j runs
over the positions that the mask lets i see. So o_i, and with its previous state the new state of i, is a function of c_i and of the
multiset of (c_j, s_ij, t_ij): positions with equal c_i and equal multisets stay equal, whatever the weights are. If rows of a sum to one
constant and all values that i sees are equal, o_i is that constant times this value, and the weights do not matter.

So the number of colours is an upper bound on the number of distinct rows, for all weights. Almost all weights attain it unless the
functions a, v, r are special. The measure `probe` compares the two.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    value = join_labels(
        np.broadcast_to(colours, sight.visible.shape), sight.values
    )  # (T, T): the value that j offers to i
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
    found = [np.unique(sight.start, return_inverse=True)[1].reshape(-1)]
    while len(found) <= depth:
        after = refine(sight, found[-1])
        if after.max() == found[-1].max():  # colours are only ever split
            break
        found.append(after)
    return found
