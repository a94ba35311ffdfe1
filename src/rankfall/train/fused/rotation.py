"""Rotation of queries and keys, in place: pairs of their coordinates turn by an angle of the token's own (`nets/positions/rope.py`)."""

from rankfall.train.fused.compiled import compiled, elementwise


@elementwise
def turn_pair(first, second, cos, sin):  # type: ignore[no-untyped-def]
    """(first, second) becomes (cos first - sin second, sin first + cos second); all (T, B) but cos and sin, (T,)."""
    for t in range(first.shape[0]):
        for b in range(first.shape[1]):
            x, y = first[t, b], second[t, b]
            first[t, b] = cos[t] * x - sin[t] * y
            second[t, b] = sin[t] * x + cos[t] * y


@elementwise
def turn_pair_back(first, second, cos, sin):  # type: ignore[no-untyped-def]
    """The transpose."""
    for t in range(first.shape[0]):
        for b in range(first.shape[1]):
            x, y = first[t, b], second[t, b]
            first[t, b] = cos[t] * x + sin[t] * y
            second[t, b] = cos[t] * y - sin[t] * x


@elementwise
def stretch(x, factor):  # type: ignore[no-untyped-def]
    for t in range(x.shape[0]):
        for b in range(x.shape[1]):
            x[t, b] *= factor[t]


@compiled
def rotate(x, turns, heads, back):  # type: ignore[no-untyped-def]
    """Queries or keys x (H d, R). `turns` (d, T): the cosine of each pair, its sine, and where d is odd a factor of the last coordinate;
    with `back` by the transpose, as gradients are."""
    size, tokens = turns.shape
    pairs = size // 2
    states = x.reshape((heads, size, tokens, x.shape[1] // tokens))
    for h in range(heads):
        for p in range(pairs):
            first, second = states[h, p], states[h, pairs + p]
            if back:
                turn_pair_back(first, second, turns[p], turns[pairs + p])
            else:
                turn_pair(first, second, turns[p], turns[pairs + p])
        if size % 2:
            stretch(states[h, size - 1], turns[size - 1])
