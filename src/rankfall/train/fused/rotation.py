"""Rotation of queries and keys, in place: pairs of their coordinates turn by an angle of the token's own (`nets/positions/rope.py`)."""

from rankfall.train.fused.compiled import compiled, elementwise


@elementwise
def turn_pair(first, second, cos, sin, sequences):  # type: ignore[no-untyped-def]
    """(first, second) becomes (cos first - sin second, sin first + cos second); all (R,) but cos and sin, (T,)."""
    for t in range(cos.shape[0]):
        for r in range(t * sequences, (t + 1) * sequences):
            x, y = first[r], second[r]
            first[r] = cos[t] * x - sin[t] * y
            second[r] = sin[t] * x + cos[t] * y


@elementwise
def turn_pair_back(first, second, cos, sin, sequences):  # type: ignore[no-untyped-def]
    """The transpose."""
    for t in range(cos.shape[0]):
        for r in range(t * sequences, (t + 1) * sequences):
            x, y = first[r], second[r]
            first[r] = cos[t] * x + sin[t] * y
            second[r] = cos[t] * y - sin[t] * x


@elementwise
def stretch(x, factor, sequences):  # type: ignore[no-untyped-def]
    for t in range(factor.shape[0]):
        for r in range(t * sequences, (t + 1) * sequences):
            x[r] *= factor[t]


@compiled
def rotate(x, turns, heads, sequences, back):  # type: ignore[no-untyped-def]
    """Queries or keys x (H d, R). `turns` (d, T): the cosine of each pair, its sine, and where d is odd a factor of the last coordinate;
    with `back` by the transpose, as gradients are."""
    size = turns.shape[0]
    pairs = size // 2
    states = x.reshape((heads, size, x.shape[1]))
    for h in range(heads):
        for p in range(pairs):
            first, second = states[h, p], states[h, pairs + p]
            if back:
                turn_pair_back(first, second, turns[p], turns[pairs + p], sequences)
            else:
                turn_pair(first, second, turns[p], turns[pairs + p], sequences)
        if size % 2:
            stretch(states[h, size - 1], turns[size - 1], sequences)
