"""Properties of a normaliser that its centred form depends on, detected by tests on random numbers.

Changes below TINY, relative to the others, count as zero: adding 1e-14 to a denominator, for example, is not detected.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from rankfall.rank.centred.assumptions import NEAR, SLOPE, Unknown, draw_like, same

Map = Callable[[Tensor], Tensor]

TINY = 1e-13  # relative to a slope; smaller changes are rounding
FAR = 30.0  # a common score that reveals a term added to a denominator, or a cap on scores
STEP = 1e-6  # step away from equal scores, to detect a kink there


@dataclass(frozen=True)
class Traits:
    shift: str  # effect of a score common to a row: none ("forgotten"), none where scores are equal ("level"), or some ("felt")
    sums: str  # row sums are "constant", stationary where scores are equal ("level"), or change at first order ("felt")


def slope(f: Map, x: Tensor, *along: Tensor) -> Tensor:
    """Return the derivative of f at x along these directions, one order for each."""
    if not along:
        return f(x)
    *rest, last = along
    found: Tensor = torch.func.jvp(lambda y: slope(f, y, *rest), (x.contiguous(),), (last.contiguous(),))[1]
    return found


def treats_rows_alike(f: Map, like: Tensor) -> bool:
    """Check whether f treats all rows of scores like (K, B, H, T, J) alike, and each independently of other rows and samples."""
    x = draw_like(like)
    y = f(x)
    alone = x[:, :1, :, :1].expand_as(x).contiguous()
    return same(f(x.roll((1, 1), (1, 3))), y.roll((1, 1), (1, 3))) and same(f(alone), y[:, :1, :, :1].expand_as(y))


def single(f: Map, like: Tensor) -> bool:
    """Check whether f computes in less than float64 and so rounds rows, for scores like (K, B, H, T, J)."""
    y = f(draw_like(like) / 10)
    return bool((y == y.float().double()).all())


def traits(f: Map, base: Tensor, level: bool) -> Traits:
    """Detect the properties of a normaliser that treats rows alike, near the scores that all rows share (K, B, H, T, J)."""
    x, along = draw_like(base), draw_like(base, 1)
    common = draw_like(base[..., :1], 2).expand_as(base)  # a score for each row
    y = f(x / 10)
    try:
        steep = slope(f, x / 10, along)
        edge = slope(f, base + STEP * x, along), slope(f, base, along)
        slope(f, base, along, along, along)
    except (RuntimeError, NotImplementedError) as reason:
        raise Unknown("the normaliser has no forward derivatives: no centred form") from reason
    seen = (f(x / 10 + NEAR * along) - f(x / 10 - NEAR * along)) / (2 * NEAR)
    if bool(((steep - seen).flatten(1).norm(dim=1) > SLOPE * seen.flatten(1).norm(dim=1)).any()):
        raise Unknown("the slope of the normaliser is not its derivative: no centred form")
    if bool(((edge[0] - edge[1]).flatten(1).norm(dim=1) > SLOPE * edge[1].flatten(1).norm(dim=1)).any()):
        raise Unknown("the slope of the normaliser jumps at the scores that all rows share: no centred form")

    def sums(z: Tensor) -> Tensor:
        return f(z).sum(-1, keepdim=True)

    def still(g: Map, direction: Tensor, *points: Tensor) -> bool:
        """Check whether the slope of g in this direction is zero, compared with that of f."""
        return all(is_rounding(slope(g, z, direction), slope(f, z, along)) for z in points)

    anywhere, everywhere_level = (x, x / 10, base), (common, common / 10, base + common)
    shift, total = "felt", "felt"
    if level and still(f, common, *everywhere_level):
        shift = "level"
    if still(f, common, *anywhere) and all(same(f(x / 10 + far), y) for far in (FAR, -FAR)):
        shift = "forgotten"
    if level and still(sums, along, *everywhere_level):
        total = "level"
    ones = y.sum(-1, keepdim=True)
    if still(sums, along, *anywhere) and all(same(sums(z), ones, y) for z in (x, x / 10 + FAR, x / 10 - FAR)):
        total = "constant"
    return Traits(shift, total)


def is_rounding(change: Tensor, beside: Tensor) -> bool:
    """Check whether a change is rounding compared with another, for each member (K, ...); NaN counts as zero."""
    size = TINY * beside.nan_to_num().flatten(1).abs().amax(1)
    return bool((change.nan_to_num().flatten(1).abs().amax(1) <= size).all())
