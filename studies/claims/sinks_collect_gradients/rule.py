from rankfall import Decision, Extension, Read, Threshold, band, band_of, change_of, evidence_rows, is_on, judge
from studies.claims.rules import by_parts, lies_between, slopes, true_of_all
from studies.claims.sinks_collect_gradients.names import CAUSAL, FULL, GRADIENT, SLOPE, WEIGHT

SINK = Threshold(0.5, "above", WEIGHT, "with the largest number added; else undecided")
LARGE = Threshold(1.0, "above", GRADIENT, "ten times the others', with the largest number added")
MORE = Threshold(0.3, "above", "decades of the first token's gradient with a sink less those without")
LOW = Threshold(-1.1, "above", "slope of the gradient through a norm over the size of the state, both as log10")
HIGH = Threshold(-0.9, "below", "slope of the gradient through a norm over the size of the state, both as log10")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    none, most = 0.0, float(evidence_rows(rows, WEIGHT).x.max())
    weight = {line: band_of(rows, WEIGHT, line, most) for line in (CAUSAL, FULL)}
    start, end = (band_of(rows, GRADIENT, CAUSAL, x) for x in (none, most))
    grown = {line: change_of(rows, GRADIENT, line, none, most) for line in (CAUSAL, FULL)}
    fall = band(slopes(evidence_rows(rows, SLOPE)))
    sentence = (
        f"With {weight[CAUSAL].mean:.0%} of the weight, the first token's gradient is {10**end.mean:.3g} times that of others, and "
        f"{10**start.mean:.3g} times without a sink, by the mask alone. Through a norm it falls with the {fall.mean:.2f}th power of the "
        "state's size."
    )
    collects = true_of_all((is_on(end, LARGE), is_on(grown[CAUSAL], MORE)))
    beside = Extension(
        f"attention to all tokens ({10 ** grown[FULL].mean:.3g} times as much as without a sink)",
        is_on(grown[FULL], MORE),
    )
    return judge(
        sentence,
        end,
        "a sink, or more seeds",
        [beside],
        undecided=is_on(weight[CAUSAL], SINK) is not True,
        **by_parts((collects, lies_between(fall, LOW, HIGH))),
    )
