"""Sentences on how much is left of the tokens: they become one vector, or more alike, in the last layer or on the way, or stay apart.

A token or a few channels that are much larger than the others keep the residual high whatever becomes of the others, so the residual
without them is judged by the same rule.
"""

from __future__ import annotations

from rankfall.check.layer import StreamReport

ONE, ALIKE = 0.1, 0.75  # shares of the first residual below which tokens become one vector, or more alike
FLOOR = 0.05  # below this residual tokens are one vector, whatever it was before
HIDING = {"without_first": "the first token", "without_largest": "the three largest channels"}


def number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}" if 0.1 <= abs(value) < 1000 else f"{value:.2g}"


def least(first: float) -> float:
    """Return the residual below which tokens become one vector."""
    return max(FLOOR, ONE * first)


def lowest_of(report: StreamReport, column: str = "residual") -> tuple[float, int]:
    """Return the smallest value of a column and its layer."""
    values = [(getattr(layer, column), layer.layer) for layer in report.layers]
    return min(pair for pair in values if pair[0] is not None)


def say_kept(report: StreamReport, first: float, last: float) -> str:
    """Return a sentence on the residual from the first layer to the last."""
    where = after_last(report)
    start = first if report.start is None else report.start
    if report.start is None and first < FLOOR:
        already = " already" * (last < FLOOR)
        return f"The tokens are one vector before the layers{already}: their residual is {number(first)} there and {number(last)} {where}."
    lowest, layer = lowest_of(report)
    over = "over all parts of the model their residual falls" if report.start is not None else "their residual falls"
    falls = f"{over} from {number(start)} to {number(last)}{f' {where}' * (report.start is None)}."
    if last < least(start):
        return f"The tokens become one vector: {falls}"
    if lowest < least(start):
        if report.start is not None:
            return (
                f"The tokens become one vector on the way: over all parts of the model their residual is {number(start)} before the first, "
                f"{number(lowest)} after layer {layer} of this one, and {number(last)} {where}."
            )
        return (
            f"The tokens become one vector on the way: their residual is {number(first)} before the layers, {number(lowest)} after "
            f"layer {layer}, and {number(last)} {where}."
        )
    if last < ALIKE * start:
        return f"The tokens become more alike: {falls}"
    if report.part:
        return (
            f"This is a part of the model: the residual of the tokens is {number(first)} before it and {number(last)} {where}, which says "
            "nothing of the whole."
        )
    ends = f"is {number(first)} before the layers and {number(last)} {where}"
    if say_hidden(report):
        return f"The residual of the tokens {ends}, but a few numbers keep it there."
    return f"The tokens stay apart: their residual {ends}."


def after_last(report: StreamReport) -> str:
    return f"after {report.depth} layers" if report.depth > 1 else "after the layer"


def say_hidden(report: StreamReport) -> list[str]:
    """Return a sentence for each of the first token and the largest channels that hides how the others become one vector."""
    if not keeps_rank(report, "residual"):
        return []
    return [say_without(report, column, what) for column, what in HIDING.items() if not keeps_rank(report, column)]


def say_without(report: StreamReport, column: str, what: str) -> str:
    """Return a sentence on the tokens without the numbers that hide them."""
    first, last = (getattr(report.layers[place], column) for place in (0, -1))
    lowest, layer = lowest_of(report, column)
    said = f"Without {what} the tokens"
    if first is not None and first < FLOOR:
        return f"{said} are one vector before the layers: their residual is {number(first)} there and {number(last)} {after_last(report)}."
    if last == lowest:
        return f"{said} become one vector: their residual falls from {number(first)} to {number(last)} {after_last(report)}."
    return (
        f"{said} become one vector: their residual is {number(first)} before the layers, {number(lowest)} after layer {layer}, and "
        f"{number(last)} {after_last(report)}."
    )


def keeps_rank(report: StreamReport, column: str) -> bool:
    """Return whether a residual is at no layer so low that tokens are one vector. True for a column without values."""
    values = [value for layer in report.layers if (value := getattr(layer, column)) is not None]
    start = report.start if report.start is not None and column == "residual" else None
    return not values or min(values) >= least(values[0] if start is None else start)


def stays_apart(report: StreamReport) -> bool:
    """Return whether the tokens become neither one vector nor more alike, also without what may hide it."""
    residuals = [layer.residual for layer in report.layers if layer.residual is not None]
    kept = all(keeps_rank(report, column) for column in ("residual", *HIDING))
    return kept and residuals[-1] >= ALIKE * residuals[0]
