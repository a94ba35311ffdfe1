"""The check of rank: whether the tokens become one vector, which layer and part lose most, and what keeps more.

A token or a few channels that are much larger than the others keep the residual high whatever becomes of the others, so the residual
without them is judged by the same rule.
"""

from __future__ import annotations

import math

from rankfall.check.bands import TRAINED, ReferenceBand
from rankfall.check.checks.gradients import STEEP, is_steep
from rankfall.check.layer import Outcome, StreamReport, number
from rankfall.check.named import Limit, Result, failed, named, passed, skipped, warned
from rankfall.check.recording import Recording
from rankfall.streams.branches import ITSELF

FLOOR = Limit(
    0.05,
    "below this residual tokens are one vector",
    "the cosine of two tokens is then above 0.997, and bfloat16 keeps 3 bits of what differs",
)
ONE = Limit(
    0.1,
    "below this share of the first residual tokens become one vector, too",
    "our choice: a tenth of what differs is left",
)
ALIKE = Limit(
    0.75,
    "below this share they become more alike, which warns",
    "our choice: a quarter of what differs is gone",
)
HIDING = {"without_first": "the first token", "without_largest": "the three largest channels"}
MORE = 1.05  # an intervention helps if it raises the residual by this factor


@named("rank-kept", FLOOR, ONE, ALIKE)
def rank_kept(seen: Recording) -> Result:
    """Do tokens stay apart?

    The residual of a state X with one row per token is ||X - 1 m|| / ||X||, with m the mean of the rows and ||A|| the square root of the
    largest column sum times the largest row sum of absolute values; the mean over samples. It is 0 for equal rows and about 1 for unrelated
    ones, and may exceed 1, since this norm of a part may exceed that of the whole. It is judged at all layers, for all tokens, without the
    first token, and without the three largest channels.
    """
    return judge_rank(seen.report)


def judge_rank(report: StreamReport) -> Result:
    """Return the verdict of a report."""
    first, last = report.layers[0].residual, report.layers[-1].residual
    if first is None or last is None:
        return skipped(f"the {'last' if last is None else 'first'} state is zero: it has no residual")
    hidden = say_hidden(report)
    sentence = " ".join([say_kept(report, first, last), *hidden])
    lost = bool(hidden) or not keeps_rank(report, "residual") or first < FLOOR
    below = [line for line in band(report, last) if " is below " in line]
    if below and not lost:
        sentence += " " + below[0]
    path = report.layers[report.worst].name if report.worst is not None else ""
    if lost:
        return failed(sentence, path)
    start = first if report.start is None else report.start
    return warned(sentence, path) if below or last < ALIKE * start else passed(sentence)


def explain_rank(report: StreamReport) -> list[str]:
    """Return the sentences below the table: other networks, the layer that loses most, and what keeps more."""
    last = report.layers[-1].residual
    if last is None or not report.judged:
        return []
    return [*band(report, last), *worst(report), *say_helped(report, last)]


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


def band(report: StreamReport, last: float) -> list[str]:
    """Return sentences that compare the last residual with the reference bands."""
    said, subject = [], "The residual of all tokens" if say_hidden(report) else "That"
    for one in report.bands:
        low, high = one.low[-1], one.high[-1]
        if one.when == TRAINED:
            said.append(f"After training {one.of} kept {span(low, high)}.")
            continue
        place = "below" if last < low else "above" if last > high else "within"
        if place != "within" and number(last) in (number(low), number(high)):
            place = "at the edge of"
        since = ""
        if place == "below" and (layer := below_from(report, one)) < report.depth:
            since = f"; it is below from layer {layer} on" if layer else "; it is below before the first layer already"
        keep = "keeps" if one.alone else "keep"
        said.append(f"{subject} is {place} what {one.of} {keep} {one.when}, {span(low, high)}{since}.")
    return said


def span(low: float, high: float) -> str:
    return number(low) if number(low) == number(high) else f"{number(low)} to {number(high)}"


def below_from(report: StreamReport, reference: ReferenceBand) -> int:
    """Return the first layer from which on all residuals are below the band."""
    found = report.depth
    for layer in reversed(report.layers):
        if layer.residual is None or layer.residual >= reference.at(layer.layer, report.depth)[0]:
            break
        found = layer.layer
    return found


def worst(report: StreamReport) -> list[str]:
    """Return a sentence on the layer that loses most, and on each of its branches."""
    if report.worst is None:
        return []
    before, after = (report.layers[n].residual for n in (report.worst - 1, report.worst))
    if before is None or after is None or after >= 0.98 * before:
        return ["No layer loses more than a fiftieth of it."]
    said = f"Layer {report.worst} loses most, from {number(before)} to {number(after)}"
    parts = [
        f"{number(one.residuals[report.worst])} without {adds(one.name)}{f' ({one.does})' * bool(one.does)}"
        for one in report.without
    ]
    return [f"{said}; it would be {join_words(parts)}." if parts else f"{said}."]


def adds(name: str) -> str:
    """Return the name of a branch in a sentence. An addition outside all parts of a layer is what the layer itself adds."""
    return "what the layer itself adds" if name == ITSELF else name


def join_words(parts: list[str]) -> str:
    """Join words as in "a, b and c"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def say_helped(report: StreamReport, last: float) -> list[str]:
    """Return sentences on the interventions that keep more, with their gradients."""
    better = [one for one in report.interventions if one.last is not None and one.last > MORE * last and sound(one)]
    if not report.interventions or report.silent == sum(len(layer.parts) for layer in report.layers) > 0:
        return []
    if not report.part and stays_apart(report) and not steep(report):
        tried = [one.last for one in report.interventions if one.last is not None]
        return [
            f"It needs no change to keep its tokens apart; with the {len(tried)} that were tried it keeps {number(min(tried))} to "
            f"{number(max(tried))}."
        ]
    best = sorted(better, key=lambda one: -(one.last or 0.0))[:2]
    if all(one.gradient is None or is_steep(one.gradient, one.gradient * one.shorter, STEEP) for one in best):
        best += [one for one in flatter(report, last) if one not in best]
    if not best:
        return [
            f"None of {len(report.interventions)} changes that were tried on this model keeps more than {number(last)}."
        ]
    now = number(report.layers[0].gradient)
    said = [
        f"Tried on this model: with {one.name} the last layer keeps {number(one.last)} instead of {number(last)}, and the gradient of the "
        f"input is {number(one.gradient)} instead of {now}."
        for one in best
    ]
    return [*said, "A branch that does less keeps more: how a changed model trains is not measured here."]


def flatter(report: StreamReport, last: float) -> list[Outcome]:
    """Return the intervention that flattens a steep gradient most and keeps the tokens about as far apart."""
    now = report.layers[0].gradient
    if now is None or now <= 0 or not steep(report):
        return []
    less = [
        (abs(math.log(one.gradient)), number_of)
        for number_of, one in enumerate(report.interventions)
        if one.gradient and one.last is not None and one.last >= ALIKE * last
    ]
    found = [number_of for size, number_of in sorted(less) if size < abs(math.log(now)) / 2]
    return [report.interventions[found[0]]] if found else []


def sound(one: Outcome) -> bool:
    return one.gradient is None or 1e-3 < one.gradient < 1e3


def steep(report: StreamReport) -> bool:
    """Return whether the gradient explodes or vanishes on the way back."""
    size = report.layers[0].gradient
    return size is not None and is_steep(size, size * report.shorter, STEEP)
