"""What the numbers say, in sentences. Each is about this model, and every number in it was measured on it."""

from __future__ import annotations

from rankfall.check.layer import Outcome, StreamReport

MORE = 1.05  # so much more residual counts as help
SINK = 0.5


def verdict(report: StreamReport) -> list[str]:
    """The sentences, the most important first."""
    residuals = [layer.residual for layer in report.layers]
    first, last = residuals[0], residuals[-1]
    if first is None or last is None:
        return ["The last state is not finite, or zero: it has no residual."]
    said = [
        kept(report, first, last),
        *band(report, last),
        *worst(report),
        *attention(report),
        *equal(report),
        *gradient(report),
    ]
    return [*said, *helped(report, last)]


def kept(report: StreamReport, first: float, last: float) -> str:
    where = f"after {report.depth} layers" if report.depth > 1 else "after the layer"
    if last < 0.1 * first:
        return f"The tokens become one vector: their residual falls from {number(first)} to {number(last)} {where}."
    if last < 0.5 * first:
        return f"The tokens become more alike: their residual falls from {number(first)} to {number(last)} {where}."
    return f"The tokens stay apart: their residual is {number(first)} before the layers and {number(last)} {where}."


def band(report: StreamReport, last: float) -> list[str]:
    if report.band is None:
        return []
    low, high = report.band
    place = "below" if last < low else "above" if last > high else "within"
    return [f"That is {place} what {report.band_of} keep at birth, {number(low)} to {number(high)}."]


def worst(report: StreamReport) -> list[str]:
    """The layer that loses most, and which of its branches does it."""
    if report.worst is None:
        return []
    before, after = (report.layers[n].residual for n in (report.worst - 1, report.worst))
    if before is None or after is None or after >= 0.98 * before:
        return ["No layer loses more than a fiftieth of it."]
    said = f"Layer {report.worst} loses most, from {number(before)} to {number(after)}"
    parts = [f"{number(one.residuals[report.worst])} without {one.name}" for one in report.without]
    return [f"{said}; it would be {' and '.join(parts)}." if parts else f"{said}."]


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
        return [f"Equal tokens ({report.equal_tokens}) stay equal: the layers cannot tell places apart."]
    return [f"Equal tokens ({report.equal_tokens}) come out as {last} different rows of {report.tokens}."]


def gradient(report: StreamReport) -> list[str]:
    size = report.layers[0].gradient
    if size is None:
        return []
    if size > 10 or size < 0.1:
        way = "explodes" if size > 10 else "vanishes"
        return [f"The gradient {way} on the way back: at the input it is {number(size)} times that of the last state."]
    return [f"The gradient of the input is {number(size)} times that of the last state."]


def helped(report: StreamReport, last: float) -> list[str]:
    """Changes that keep more, with the gradient that they give."""
    better = [one for one in report.interventions if one.last is not None and one.last > MORE * last and sound(one)]
    if not report.interventions:
        return []
    if not better:
        return [
            f"None of {len(report.interventions)} changes that were tried on this model keeps more than {number(last)}."
        ]
    best = sorted(better, key=lambda one: -(one.last or 0.0))[:2]
    now = number(report.layers[0].gradient)
    return [
        f"Tried on this model: with {one.name} the last layer keeps {number(one.last)} instead of {number(last)}, and the gradient of the "
        f"input is {number(one.gradient)} instead of {now}."
        for one in best
    ]


def sound(one: Outcome) -> bool:
    return one.gradient is None or 1e-3 < one.gradient < 1e3


def number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}" if 0.1 <= abs(value) < 1000 else f"{value:.2g}"
