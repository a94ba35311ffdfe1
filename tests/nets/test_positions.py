"""Check every position against double loops over its formula, at the trained length and others."""

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


def make(name: str, options: dict[str, Any]) -> Any:
    """Return the position in float64, every parameter drawn anew around its start."""
    position = components.load("position", name)(SIZES, **options).double()
    generator = torch.Generator().manual_seed(2)
    for value in position.parameters():
        start = value.initial.constant
        value.data = start + 0.5 * torch.randn(value.shape, generator=generator, dtype=torch.float64)
    return position.requires_grad_(False)


def inputs_of(length: int) -> dict[str, Tensor]:
    """Draw states, queries, keys, values and weights of two members and two samples."""
    shapes = {"x": (length, 7), **dict.fromkeys("qkv", (3, length, 4)), "p": (3, length, length)}
    generator = torch.Generator().manual_seed(0)
    drawn = {
        name: torch.randn(2, 2, *shape, generator=generator, dtype=torch.float64) for name, shape in shapes.items()
    }
    return drawn | {"p": drawn["p"].softmax(-1)}


# The formulas, for one member, sample and head, in plain Python: what is added to the score q . k / sqrt(d).
def dot(a: Any, b: Any) -> float:
    return math.fsum(float(x) * float(y) for x, y in zip(a, b))


def wave(place: float, width: int, base: float) -> list[float]:
    return [(math.sin if c % 2 == 0 else math.cos)(place * base ** (-2 * (c // 2) / width)) for c in range(width)]


def bucket(offset: int, buckets: int, farthest: int, two_sided: bool) -> int:
    """In whole numbers: the last bucket b whose first offset e (f / e)^((b - e) / (s - e)) is reached, e buckets being exact."""
    side = buckets // 2 if two_sided else buckets
    n, e = abs(offset) if two_sided else max(offset, 0), side // 2
    reached = (b for b in range(e, side) if n ** (side - e) * e ** (b - e) >= farthest ** (b - e) * e ** (side - e))
    return (n if n < e else max(reached)) + (side if two_sided and offset < 0 else 0)


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
    weights, biases = position.inner.weight[m, 0], position.inner.bias[m, 0]
    inner = [max(0.0, ratio * float(w) + float(b)) for w, b in zip(weights, biases)]
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
    position, given = make(name, options), inputs_of(length)
    q, k = position.rotate(given["q"], given["k"])
    scores = position.bias(position.products(q, k) * q.shape[-1] ** -0.5)
    for m, b, h in ((0, 0, 0), (1, 1, 2), (1, 0, 1)):
        head = position, m, h, given["q"][m, b, h], given["k"][m, b, h]
        wanted = [[by_hand(name, options, *head, i, j) for j in range(length)] for i in range(length)]
        torch.testing.assert_close(scores[m, b, h], torch.tensor(wanted, dtype=torch.float64), rtol=EXACT, atol=EXACT)


@each
@pytest.mark.parametrize("length", [6, 9])
def test_states_and_contexts_are_the_formula(name: str, options: dict[str, Any], length: int) -> None:
    position, given = make(name, options), inputs_of(length)
    if length > 6 and components.describe("position", name).facts["ADMITS"] != "any":  # type: ignore[union-attr]
        with pytest.raises(RankfallError, match=r"^[^\n]*9 tokens[^\n]*$"):
            position.embed(given["x"])
        return
    x, context = position.embed(given["x"]), position.context(given["p"], given["v"])
    for m, b, h in ((0, 1, 0), (1, 0, 2)):
        for i in range(length):
            place = [0.0] * 7
            if name == "sinusoidal":
                place = [0.7 * v for v in wave(i, 7, 50.0)]
            if name == "learned":
                place = position.table[m, 0, i].tolist()
            wanted = given["x"][m, b, i] + torch.tensor(place, dtype=torch.float64)
            torch.testing.assert_close(x[m, b, i], wanted, rtol=EXACT, atol=EXACT)
            total = torch.zeros(4, dtype=torch.float64)
            for j in range(length):
                more = position.values[m, 0, 0, clipped(i - j, 3)] if name == "shaw" else 0.0
                total += given["p"][m, b, h, i, j] * (given["v"][m, b, h, j] + more)
            torch.testing.assert_close(context[m, b, h, i], total, rtol=EXACT, atol=EXACT)


@pytest.mark.slow  # the library takes seconds to import
def test_buckets_are_those_of_transformers() -> None:
    from transformers.models.t5.modeling_t5 import T5Attention

    offset = torch.arange(-300, 301)
    for two_sided in (True, False):
        position = components.load("position", "t5")(SIZES, two_sided=two_sided)
        limits = {"num_buckets": 32, "max_distance": 128}
        theirs = T5Attention._relative_position_bucket(-offset, bidirectional=two_sided, **limits)
        assert torch.equal(position.buckets(offset), theirs)


def test_slopes_are_the_published_ones() -> None:
    assert slopes(8) == [2.0**-h for h in range(1, 9)]
    assert slopes(16) == [2 ** (-h / 2) for h in range(1, 17)]
    assert slopes(12) == slopes(8) + [2 ** (-h / 2) for h in (1, 3, 5, 7)]
    assert slopes(1) == [2.0**-8]
