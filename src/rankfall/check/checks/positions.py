"""The check of positions."""

from typing import Any

import torch
from torch import Tensor

from rankfall.check.attention import weights_of
from rankfall.check.equal import IN_INPUTS, change_entry, turned, with_equal_tokens
from rankfall.check.named import Limit, Result, failed, named, passed, skipped, warned
from rankfall.check.recording import RecordedStream
from rankfall.streams.axes import differs
from rankfall.streams.edits import Edits
from rankfall.streams.passes import run_through

FAR = Limit(
    4,
    "if at least so many heads, and all, weigh equal tokens the more the farther they are, it fails",
    "our choice: rotary or learned positions order the distances at random, and seldom so in each of four heads",
)


@named("positions-differ", FAR)
def positions_differ(seen: RecordedStream) -> Result:
    """Does a model know the order of tokens?

    All tokens of a sample are set equal, in the inputs where these are token numbers, and the distinct rows of each state are counted
    (relative distance above 1e-9). If they stay equal, as with relative positions, the order of the tokens is reversed: a model of sets
    returns the same rows in reversed order. A causal mask knows the order, too. Scores of equal tokens differ by their positions alone: if
    all heads then weigh a token the more the farther it is, a bias for near tokens, such as ALiBi, has the wrong sign.
    """
    last, tokens = seen.report.layers[-1].distinct, seen.report.tokens
    grow = far_heads(seen)
    if len(grow) >= FAR and all(grow):
        return failed(
            f"all {len(grow)} heads weigh equal tokens the more the farther they are: is the sign of a bias wrong?"
        )
    if last is not None and last > 1:
        return passed(f"equal tokens come out as {last} different rows of {tokens}")
    if not any(branch.mixes for branch in seen.flow.branches):
        return skipped("nothing mixes tokens")
    said = "equal tokens stay equal" if last is not None else "tokens cannot be set equal"
    if knows_order(seen):
        return passed(f"{said}, and other states follow if their order is reversed")
    if seen.report.equal_tokens != IN_INPUTS:
        return skipped("the layers know no order; positions may have been added to the inputs, which are vectors")
    return warned(f"{said}, and reversing their order reverses the states: no layer knows the order of tokens")


def knows_order(seen: RecordedStream) -> bool:
    """Return whether reversed tokens have other states than the reversed ones."""
    flow, examined = seen.flow, seen.examined
    other = turned(examined, flow, seen.report.shape) if seen.report.equal_tokens == IN_INPUTS else None

    def enter(tensor: Tensor) -> Tensor:
        return change_entry(flow, tensor, lambda rows: rows.flip(1))

    if other is not None:
        after = run_through(examined.model, *other, Edits()).states[-1]
    else:
        after = run_through(examined.model, examined.arguments, flow, Edits(enter=enter)).states[-1]
    rows = flow.layout.to_rows(after)
    return rows.shape == seen.states[-1].shape and bool(differs(rows.flip(1), seen.states[-1]).any())


def far_heads(seen: RecordedStream) -> list[bool]:
    """Return, for each head that mixes the tokens of the stream, whether it weighs equal tokens the more the farther they are."""
    flow, examined = seen.flow, seen.examined
    equal, enter = with_equal_tokens(examined, flow, seen.report.shape)
    grow: list[bool] = []

    def look(number: int, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = func(*args, **kwargs)
        weights = weights_of(func, args, kwargs, result)
        if flow.branches[number].mixes and weights.shape[-2:] == (seen.report.tokens, seen.report.tokens):
            grow.extend(grows_with_distance(weights.detach()).tolist())
        return result

    if seen.heads and seen.report.tokens > 4:
        edits = Edits(attend=look) if equal else Edits(enter=enter, attend=look)
        run_through(examined.model, equal or examined.arguments, flow, edits)
    return grow


def grows_with_distance(weights: Tensor) -> Tensor:
    """Return for each head whether no visible token has less weight than a nearer one on its side. (B, H, T, T) -> (H,)"""
    weights = weights.unsqueeze(1) if weights.dim() == 3 else weights.flatten(0, -4)
    nearer, later = weights[..., 1:], weights[..., :-1]  # neighbours j + 1 and j
    place = torch.arange(weights.shape[-1])
    before = place[:-1] < place[:, None]  # j + 1 is at most i
    rise = torch.where(before, later - nearer, nearer - later)  # from the nearer to the farther
    rise = torch.where((nearer > 0) & (later > 0), rise, 0.0) / weights.amax(-1, keepdim=True).clamp_min(1e-300)
    return (rise >= -1e-9).all(-1).all(-1).all(0) & (rise > 1e-6).any(-1).any(-1).all(0)
