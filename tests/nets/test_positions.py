"""Every position against double loops over its formula, and what it says it depends on against what it does."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from rankfall import components
from rankfall.errors import RankfallError
from rankfall.nets.positions.alibi import slopes
from rankfall.nets.primitives import Sizes

SIZES = Sizes(2, length=6, depth=2, width=7, heads=3, head_width=4, mlp_width=8, size_in=1, size_out=1)
CASES: list[tuple[str, dict[str, Any]]] = [
    ("none", {}),
    ("learned", {}),
    ("sinusoidal", {"base": 50.0, "scale": 0.7}),
    ("toeplitz", {}),
    ("symmetric", {}),
    ("alibi", {}),
    ("t5", {"buckets": 8, "farthest": 7}),
    ("t5", {"buckets": 4, "farthest": 9, "two_sided": False}),
    ("fire", {"hidden": 5}),
    ("rope", {"base": 20.0}),
    ("polar", {"base": 20.0}),
    ("rope", {"interpolated": True, "log_n": 16}),
    ("shaw_keys", {"reach": 2}),
    ("shaw", {"reach": 3}),
    ("transformer_xl", {"base": 30.0}),
    ("deberta", {"reach": 3}),
    ("deberta", {}),
]
each = pytest.mark.parametrize(("name", "options"), CASES, ids=str)
EXACT = 1e-12


def made(name: str, options: dict[str, Any], sizes: Sizes = SIZES) -> Any:
    """In float64, every parameter drawn anew around its start."""
    one = components.load("position", name)(sizes, **options).double()
    generator = torch.Generator().manual_seed(2)
    for value in one.parameters():
        start = value.initial.constant
        value.data = start + 0.5 * torch.randn(value.shape, generator=generator, dtype=torch.float64)
    return one.requires_grad_(False)


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def parts(length: int) -> dict[str, Tensor]:
    """States, queries, keys, values and weights of two members and two samples."""
    return {
        "x": drawn(0, 2, 2, length, 7),
        "q": drawn(1, 2, 2, 3, length, 4),
        "k": drawn(2, 2, 2, 3, length, 4),
        "v": drawn(3, 2, 2, 3, length, 4),
        "p": drawn(4, 2, 2, 3, length, length).softmax(-1),
    }


def scores(position: Any, q: Tensor, k: Tensor) -> Tensor:
    return position.bias(position.products(*position.rotate(q, k)) * q.shape[-1] ** -0.5)


# The formulas, for one member, sample and head, in plain Python: what is added to the score q . k / sqrt(d).
def dot(a: Any, b: Any) -> float:
    return math.fsum(float(x) * float(y) for x, y in zip(a, b))


def wave(place: float, width: int, base: float) -> list[float]:
    return [(math.sin if c % 2 == 0 else math.cos)(place * base ** (-2 * (c // 2) / width)) for c in range(width)]


def bucket(offset: int, buckets: int, farthest: int, two_sided: bool) -> int:
    """In whole numbers: the last bucket b whose first offset e (f / e)^((b - e) / (s - e)) is reached, e buckets being exact."""
    side = buckets // 2 if two_sided else buckets
    n, e = abs(offset) if two_sided else max(offset, 0), side // 2
    found = (
        n
        if n < e
        else max(b for b in range(e, side) if n ** (side - e) * e ** (b - e) >= farthest ** (b - e) * e ** (side - e))
    )
    return found + (side if two_sided and offset < 0 else 0)


def clipped(offset: int, reach: int) -> int:
    return max(-reach, min(reach, offset)) + reach


def turned(x: Tensor, place: float, base: float) -> list[float]:
    half = len(x) // 2
    out = [0.0] * len(x)
    for p in range(half):
        angle, a, b = place * base ** (-p / half), float(x[p]), float(x[p + half])
        out[p], out[p + half] = a * math.cos(angle) - b * math.sin(angle), a * math.sin(angle) + b * math.cos(angle)
    return out


def fire(position: Any, m: int, h: int, i: int, j: int) -> float:
    c, limit = abs(float(position.bend[m])), abs(float(position.stretch[m]) * 6 / 4)
    ratio = math.log(1 + c * abs(i - j)) / math.log(1 + c * max(limit, i))
    inner = [
        max(0.0, ratio * float(w) + float(b)) for w, b in zip(position.inner.weight[m, 0], position.inner.bias[m, 0])
    ]
    return dot(inner, position.outer.weight[m, :, h]) + float(position.outer.bias[m, 0, h])


def by_hand(
    name: str, options: dict[str, Any], position: Any, m: int, h: int, q: Tensor, k: Tensor, i: int, j: int
) -> float:
    """The score of member m, head h, query i and key j; q and k (T, d) are that head's."""
    count, d = q.shape
    plain = dot(q[i], k[j]) / math.sqrt(d)
    if name == "toeplitz":
        return plain + float(position.table[m, 0, h, clipped(i - j, 5)])
    if name == "symmetric":
        return plain + float(position.table[m, 0, h, min(abs(i - j), 5)])
    if name == "alibi":
        return plain - [2.0**-4, 2.0**-8, 2.0**-2][h] * abs(i - j)
    if name == "t5":
        where = bucket(i - j, options["buckets"], options["farthest"], options.get("two_sided", True))
        return plain + float(position.table[m, 0, h, where])
    if name == "fire":
        return plain + fire(position, m, h, i, j)
    if name == "rope":
        base, step, factor = options.get("base", 10000.0), 1.0, 1.0
        if "log_n" in options:
            step, factor = min(1.0, 6 / count), math.log(count) / math.log(16)
        return factor * dot(turned(q[i], i * step, base), turned(k[j], j * step, base)) / math.sqrt(d)
    if name == "polar":
        soft = [[math.log1p(math.exp(float(value))) for value in row] for row in (q[i], k[j])]
        turns = [(i - j) * 20.0 ** (-c / d) - float(position.angle[m, 0, h, 0, c]) for c in range(d)]
        return math.fsum(a * b * math.cos(turn) for a, b, turn in zip(*soft, turns)) / math.sqrt(d)
    if name in ("shaw", "shaw_keys"):
        reach = options["reach"]
        return plain + dot(q[i], position.keys[m, 0, 0, clipped(i - j, reach)]) / math.sqrt(d)
    head = slice(h * d, (h + 1) * d)
    if name == "transformer_xl":
        r = [dot(wave(i - j, 7, 30.0), column) for column in position.map.weight[m, :, head].T]
        u, v = position.u[m, 0, h, 0], position.v[m, 0, h, 0]
        return (dot(q[i] + u, k[j]) + dot(q[i] + v, r)) / math.sqrt(d)
    if name == "deberta":
        reach = options.get("reach", 6)
        cut = lambda o: max(0, min(2 * reach - 1, o + reach))  # noqa: E731
        key = [dot(position.table[m, 0, cut(i - j)], column) for column in position.key.weight[m, :, head].T]
        query = [dot(position.table[m, 0, cut(j - i)], column) for column in position.query.weight[m, :, head].T]
        return (dot(q[i], k[j]) + dot(q[i], key) + dot(k[j], query)) / math.sqrt(3 * d)
    return plain


@each
@pytest.mark.parametrize("length", [1, 6, 9])
def test_scores_are_the_formula(name: str, options: dict[str, Any], length: int) -> None:
    """Also beyond the trained length, 6."""
    position, own = made(name, options), parts(length)
    got = scores(position, own["q"], own["k"])
    for m, b, h in ((0, 0, 0), (1, 1, 2), (1, 0, 1)):
        q, k = own["q"][m, b, h], own["k"][m, b, h]
        want = [[by_hand(name, options, position, m, h, q, k, i, j) for j in range(length)] for i in range(length)]
        torch.testing.assert_close(got[m, b, h], torch.tensor(want, dtype=torch.float64), rtol=EXACT, atol=EXACT)


@each
def test_states_and_contexts_are_the_formula(name: str, options: dict[str, Any]) -> None:
    position, own, count = made(name, options), parts(6), 6
    x, context = position.embed(own["x"]), position.context(own["p"], own["v"])
    for m, b, h in ((0, 1, 0), (1, 0, 2)):
        for i in range(count):
            place = [0.0] * 7
            if name == "sinusoidal":
                place = [0.7 * v for v in wave(i, 7, 50.0)]
            if name == "learned":
                place = position.table[m, 0, i].tolist()
            want = own["x"][m, b, i] + torch.tensor(place, dtype=torch.float64)
            torch.testing.assert_close(x[m, b, i], want, rtol=EXACT, atol=EXACT)
            total = [0.0] * 4
            for j in range(count):
                more = position.values[m, 0, 0, clipped(i - j, 3)] if name == "shaw" else [0.0] * 4
                p, v = float(own["p"][m, b, h, i, j]), own["v"][m, b, h, j]
                total = [t + p * (float(a) + float(c)) for t, a, c in zip(total, v, more)]
            torch.testing.assert_close(
                context[m, b, h, i], torch.tensor(total, dtype=torch.float64), rtol=EXACT, atol=EXACT
            )


def outcome(position: Any, own: dict[str, Tensor]) -> list[Tensor]:
    """What each hook gives, places last but one (and last, for scores)."""
    return [
        position.embed(own["x"]) - own["x"],
        scores(position, own["q"], own["k"]),
        position.context(own["p"], own["v"]),
    ]


def moved(own: dict[str, Tensor], order: Tensor) -> dict[str, Tensor]:
    """The tokens in another order, or only some of them."""
    return {name: (x[..., order, :][..., order] if name == "p" else x[..., order, :]) for name, x in own.items()}


def follows(position: Any, order: Tensor, length: int) -> bool:
    """Whether what comes out is what came out before, in the new order."""
    own = parts(length)
    if len(order) < length:  # what is cut off has no weight
        kept = torch.zeros(length, dtype=torch.bool).index_fill(0, order, True)
        own["p"] = own["p"] * kept
    before, after = outcome(position, own), outcome(position, moved(own, order))
    wanted = [x[..., order, :] for x in before]
    wanted[1] = wanted[1][..., order]
    return all(bool((a - b).abs().max() < 1e-10) for a, b in zip(after, wanted))


@each
def test_a_beginning_is_the_same_in_a_longer_sequence(name: str, options: dict[str, Any]) -> None:
    """At other lengths, where it admits them; what sees the length itself is left out."""
    position, own = made(name, options), parts(9)
    if components.describe("position", name).facts["ADMITS"] != "any":  # type: ignore[union-attr]
        with pytest.raises(RankfallError, match=r"^[^\n]*9 tokens[^\n]*$"):
            position.embed(own["x"])
        return
    if "log_n" in options:
        return
    for count in (1, 2, 6):
        assert follows(position, torch.arange(count), 9)


@pytest.mark.slow  # the library takes seconds to import
def test_buckets_are_those_of_transformers() -> None:
    from transformers.models.t5.modeling_t5 import T5Attention

    offset = torch.arange(-300, 301)
    for two_sided in (True, False):
        made_ = components.load("position", "t5")(SIZES, two_sided=two_sided)
        theirs = T5Attention._relative_position_bucket(
            -offset, bidirectional=two_sided, num_buckets=32, max_distance=128
        )
        assert torch.equal(made_.buckets(offset), theirs)


def test_slopes_are_the_published_ones() -> None:
    assert slopes(8) == [2.0**-h for h in range(1, 9)]
    assert slopes(16) == [2 ** (-h / 2) for h in range(1, 17)]
    assert slopes(12) == slopes(8) + [2 ** (-h / 2) for h in (1, 3, 5, 7)]
    assert slopes(1) == [2.0**-8]
