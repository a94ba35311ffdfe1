"""The verdict of a report in sentences. Each is about this model and uses numbers measured on it."""

from __future__ import annotations

import math

from rankfall.check.bands import TRAINED, ReferenceBand
from rankfall.check.kept import ALIKE, number, say_hidden, say_kept, stays_apart
from rankfall.check.layer import Outcome, StreamReport
from rankfall.streams.branches import ITSELF

MORE = 1.05  # an intervention helps if it raises the residual by this factor
SINK = 0.5
STEEP = 10.0  # a gradient larger or smaller by this factor explodes or vanishes


def verdict(report: StreamReport) -> list[str]:
    """Return the sentences, the most important first."""
    residuals = [layer.residual for layer in report.layers]
    first, last = residuals[0], residuals[-1]
    found = [f"Found: {finding}{'' if finding.endswith('?') else '.'}" for finding in report.findings]
    if not report.judged:
        return [*found, "What becomes of the tokens is not known."]
    if first is None or last is None:
        which = "last" if last is None else "first"
        return [*found, f"The {which} state is not finite, or zero: it has no residual."]
    said = [
        *found,
        say_kept(report, first, last),
        *say_hidden(report),
        *zeros(report),
        *band(report, last),
        *worst(report),
        *attention(report),
        *equal(report),
        *gradient(report),
    ]
    return [*said, *say_helped(report, last)]


def zeros(report: StreamReport) -> list[str]:
    """Return a sentence if branches return zero, so that the numbers may change once these open."""
    count = sum(len(layer.parts) for layer in report.layers)
    if not report.silent:
        return []
    return [
        f"{report.silent} of {count} branches return zero, as behind a gate or a last map of zeros: numbers are of the model as it is "
        "drawn, not of what it is once these open."
    ]


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


def attention(report: StreamReport) -> list[str]:
    sinks = [layer for layer in report.layers if layer.first is not None and layer.first > SINK]
    if not sinks or report.tokens <= 3:
        return []
    most = max(sinks, key=lambda layer: layer.first or 0.0)
    return [
        f"Attention rests on the first token in {len(sinks)} layers, most in layer {most.layer}, where it gets {most.first:.0%}."
    ]


def equal(report: StreamReport) -> list[str]:
    last = report.layers[-1].distinct
    if last is None or not report.equal_tokens:
        return []
    if last == 1:
        return [
            f"Equal tokens ({report.equal_tokens}) stay equal: the layers tell no places apart unless tokens differ."
        ]
    return [f"Equal tokens ({report.equal_tokens}) come out as {last} different rows of {report.tokens}."]


def gradient(report: StreamReport) -> list[str]:
    size = report.layers[0].gradient
    if size is None:
        return []
    if steep(report):
        way = "explodes" if size > STEEP else "vanishes"
        return [f"The gradient {way} on the way back: at the input it is {number(size)} times that of the last state."]
    if beyond(size):
        shorter = report.shorter
        return [
            f"The gradient at the input is {number(size)} times that of the last state, and the state there is {number(shorter)} times "
            f"as long: relative to the states, {number(size * shorter)} times."
        ]
    return [f"The gradient of the input is {number(size)} times that of the last state."]


def steep(report: StreamReport) -> bool:
    """Return whether the gradient explodes or vanishes on the way back."""
    size = report.layers[0].gradient
    return size is not None and is_steep(size, report.shorter)


def is_steep(size: float, shorter: float) -> bool:
    """Return whether a gradient explodes or vanishes, both absolutely and relative to the lengths of the states.

    A model that makes states a hundred times as long has gradients a hundred times as large before its layers, and does not explode.
    """
    return beyond(size) and beyond(size * shorter) and (size > 1) == (size * shorter > 1)


def beyond(size: float) -> bool:
    return not 1 / STEEP <= size <= STEEP


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
    if all(one.gradient is None or is_steep(one.gradient, one.shorter) for one in best):
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
