"""The check of positions."""

from torch import Tensor

from rankfall.check.equal import IN_INPUTS, change_entry, turned
from rankfall.check.named import Result, named, passed, skipped, warned
from rankfall.check.recording import RecordedStream
from rankfall.streams.axes import differs
from rankfall.streams.edits import Edits
from rankfall.streams.passes import run_through


@named("positions-differ")
def positions_differ(seen: RecordedStream) -> Result:
    """Does a model know the order of tokens?

    All tokens of a sample are set equal, in the inputs where these are token numbers, and the distinct rows of each state are counted
    (relative distance above 1e-9). If they stay equal, as with relative positions, the order of the tokens is reversed: a model of sets
    returns the same rows in reversed order. A causal mask knows the order, too.
    """
    last, tokens = seen.report.layers[-1].distinct, seen.report.tokens
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
    other = (
        turned(examined, flow, (seen.report.samples, seen.report.tokens))
        if seen.report.equal_tokens == IN_INPUTS
        else None
    )

    def enter(tensor: Tensor) -> Tensor:
        return change_entry(flow, tensor, lambda rows: rows.flip(1))

    if other is not None:
        after = run_through(examined.model, *other, Edits()).states[-1]
    else:
        after = run_through(examined.model, examined.arguments, flow, Edits(enter=enter)).states[-1]
    rows = flow.layout.to_rows(after)
    return rows.shape == seen.states[-1].shape and bool(differs(rows.flip(1), seen.states[-1]).any())
