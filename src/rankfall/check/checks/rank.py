"""The check of rank: whether the tokens become one vector, which layer and part lose most, and what keeps more.

If one token or a few channels are much larger than the others, they alone keep the residual high. So the residual without them is
judged by the same rule.
"""

from dataclasses import replace

from rankfall.check.bands import TRAINED, ReferenceBand
from rankfall.check.layer import StreamReport, show_number
from rankfall.check.named import PASS, Limit, Result, failed, named, passed, skipped, warned
from rankfall.check.recording import RecordedStream
from rankfall.report.labels import join
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
    0.2,
    "below this share they become more alike, which warns",
    "the study of warnings: below it 17 of 21 networks do not learn to sort, between it and 0.5 there are 2 of 21 (docs/causes.md)",
)
COLUMNS = {
    "residual": "tokens",
    "without_first": "without the first token, tokens",
    "without_largest": "without the three largest channels, tokens",
}
MORE = 1.05  # an intervention helps if it raises the residual by this factor
HELPED, HARMED, FLAGGED = 21, 1, 29  # by the study of warnings
PAYS = (
    f"How your model then trains is not measured: on sorting, such a change helped {HELPED} of {FLAGGED} small models that check flags, "
    f"and harmed {HARMED} (docs/causes.md)."
)


@named("rank-kept", FLOOR, ONE, ALIKE)
def rank_kept(recording: RecordedStream) -> Result:
    """Do tokens stay apart?

    The residual of a state X with one row per token is ||X - 1 m|| / ||X||, with m the mean of the rows and ||A|| the square root of the
    largest column sum times the largest row sum of absolute values; the mean over samples. It is 0 for equal rows and about 1 for unrelated
    ones, and may exceed 1, since this norm of a part may exceed that of the whole. It is judged at all layers, for all tokens, without the
    first token, and without the three largest channels.
    """
    tensors = [tensor for tensor in recording.examined.arguments.tensors() if tensor.dim() > 1]
    if tensors and all(bool((tensor == tensor.flatten()[0]).all()) for tensor in tensors):
        equal = "all numbers of the example are equal, and its tokens with them"
        return skipped(f"{equal}: pass inputs with tokens that differ")
    result, worst = judge_rank(recording.report), recording.report.worst
    return replace(result, where=recording.layer_path(worst)) if result.where and worst is not None else result


def judge_rank(report: StreamReport) -> Result:
    """Return the verdict of a report."""
    values = residuals_of(report, "residual")
    if report.layers[0].residual is None:
        return skipped("the first state is zero: it has no residual")
    path = report.layers[report.worst].name if report.worst is not None else ""
    for column, subject in COLUMNS.items():
        known = [value for value, _ in residuals_of(report, column)]
        # the first residual of a part is judged with the parts before it
        before = report.start if report.start is not None and column == "residual" else None
        if known and min(known) < max(FLOOR, ONE * (known[0] if before is None else before)):
            early = known[0] < FLOOR and before is None
            becomes = "are one vector before the layers" if early else "become one vector"
            return failed(f"{subject} {becomes}: {describe_curve(report, column)}", path)
    curve = describe_curve(report, "residual")
    if values[-1][0] < ALIKE * (values[0][0] if report.start is None else report.start):
        return warned(f"tokens become more alike: {curve}", path)
    if report.part:
        return skipped(f"this is a part of the model, which says nothing of the whole: {curve}")
    return passed(f"tokens stay apart: {curve}")


def residuals_of(report: StreamReport, column: str) -> list[tuple[float, int]]:
    """Return the known residuals of a column, with their layers."""
    return [(value, layer.layer) for layer in report.layers if (value := getattr(layer, column)) is not None]


def describe_curve(report: StreamReport, column: str) -> str:
    """Return the first and the last residual, and the smallest one if it lies between them."""
    values = residuals_of(report, column)
    in_parts = report.start is not None and column == "residual"
    whole = f"{show_number(report.start)} before the first part, " * in_parts
    (lowest, layer), depth = min(values), values[-1][1]
    between = f", {show_number(lowest)} after layer {layer}" if layer not in (0, depth) else ""
    ends = [show_number(values[index][0]) for index in (0, -1)]
    return f"residual {whole}{ends[0]} before the layers{between} and {ends[1]} after layer {depth}"


def explain_rank(report: StreamReport) -> list[str]:
    """Return the sentences below the table: other networks, the layer that loses most, and what keeps more."""
    last = report.layers[-1].residual
    if last is None or not report.judged:
        return []
    return [*compare_bands(report, last), *describe_worst(report), *say_helped(report, last)]


def compare_bands(report: StreamReport, last: float) -> list[str]:
    """Return sentences that compare the last residual with the reference bands."""
    sentences = []
    for band in report.bands:
        low, high = band.low[-1], band.high[-1]
        if band.when == TRAINED:
            sentences.append(f"After training {band.of} kept {span(low, high)}.")
            continue
        relation = "below" if last < low else "above" if last > high else "within"
        if relation != "within" and show_number(last) in (show_number(low), show_number(high)):
            relation = "at the edge of"
        since = ""
        if relation == "below" and (layer := below_from(report, band)) < report.depth:
            since = f"; it is below from layer {layer} on" if layer else "; it is below before the first layer already"
        keep = "keeps" if band.alone else "keep"
        sentences.append(f"That is {relation} what {band.of} {keep} {band.when}, {span(low, high)}{since}.")
    if report.real:
        models = [f"{model.describe()} {show_number(model.residual[-1])}" for model in report.real]
        sentences.append(f"Real models of this kind keep: {'; '.join(models)}.")
    return sentences


def span(low: float, high: float) -> str:
    return show_number(low) if show_number(low) == show_number(high) else f"{show_number(low)} to {show_number(high)}"


def below_from(report: StreamReport, reference: ReferenceBand) -> int:
    """Return the first layer from which on all residuals are below the band."""
    start = report.depth
    for layer in reversed(report.layers):
        if layer.residual is None or layer.residual >= reference.at(layer.layer, report.depth)[0]:
            break
        start = layer.layer
    return start


def describe_worst(report: StreamReport) -> list[str]:
    """Return a sentence on the layer that loses most, and on each of its branches."""
    if report.worst is None:
        return []
    before, after = (report.layers[n].residual for n in (report.worst - 1, report.worst))
    if before is None or after is None or after >= 0.98 * before:
        return ["No layer loses more than a fiftieth of it."]
    sentence = f"Layer {report.worst} loses most, from {show_number(before)} to {show_number(after)}"
    parts = []
    for outcome in report.without:
        name = "what the layer itself adds" if outcome.name == ITSELF else outcome.name
        parts.append(f"{show_number(outcome.residuals[report.worst])} without {name} ({outcome.does})")
    return [f"{sentence}; it would be {join(parts)}." if parts else f"{sentence}."]


def say_helped(report: StreamReport, last: float) -> list[str]:
    """Return sentences on the two interventions that keep most, with their gradients."""
    tried = [(kept, outcome) for outcome in report.interventions if (kept := outcome.last) is not None]
    if not tried:
        return []
    if not report.part and judge_rank(report).verdict == PASS:
        least, most = (show_number(pick(kept for kept, _ in tried)) for pick in (min, max))
        range_kept = f"with the {len(tried)} that were tried it keeps {least} to {most}"
        return [f"It needs no change to keep its tokens apart; {range_kept}."]
    better = [(kept, outcome) for kept, outcome in tried if kept > MORE * last]
    best = sorted(better, key=lambda pair: -pair[0])[:2]
    if not best:
        return [f"None of {len(tried)} changes that were tried on this model keeps more than {show_number(last)}."]
    sentences = [
        f"Tried on this model: with {outcome.name} the last layer keeps {show_number(kept)} instead of {show_number(last)}, and "
        f"the gradient of the input is {show_number(outcome.gradient)} instead of {show_number(report.layers[0].gradient)}."
        for kept, outcome in best
    ]
    return [*sentences, PAYS]
