"""The check of positions."""

from rankfall.check.equal import IN_INPUTS
from rankfall.check.named import Result, named, passed, skipped, warned
from rankfall.check.recording import Recording


@named("positions-differ")
def positions_differ(seen: Recording) -> Result:
    """Does a model tell equal tokens at different positions apart?

    All tokens of a sample are set equal, in the inputs where these are token numbers, and the distinct rows of each state are counted
    (relative distance above 1e-9). A model of sets may stay at one row; a model of sequences whose rows stay equal knows no order.
    """
    last, tokens = seen.report.layers[-1].distinct, seen.report.tokens
    if last is None:
        return skipped(seen.report.reasons.get("distinct", "tokens cannot be set equal"))
    said = f"equal tokens come out as {last} different row{'s' * (last > 1)} of {tokens}"
    if last > 1:
        return passed(said)
    if seen.report.equal_tokens != IN_INPUTS:
        return skipped(f"{said}, but were set equal in the first state, to which positions may have been added")
    return warned(f"{said}: no layer knows the order of tokens")
