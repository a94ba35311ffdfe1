from rankfall import Decision, Extension, Read, Threshold, band_of, evidence_rows, is_on, judge
from studies.claims.highways_keep_gradients.names import APART, DEEPNORM, HIGHWAY, PASSED, POST
from studies.claims.rules import by_parts, true_of_all

LOST = Threshold(-3.0, "below", PASSED, f"{POST}, a thousandth, after the last layer")
LOW = Threshold(-1.0, "above", PASSED, f"{HIGHWAY}, after the last layer")
HIGH = Threshold(1.0, "below", PASSED, f"{HIGHWAY}, after the last layer")
HALVED = Threshold(-9.6, "below", PASSED, f"{POST}, at 64 layers: 10^-19 if each halves it, by half of the decades")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    # A gradient that underflows counts as 10^-300.
    filled = rows.assign(value=rows.value.fillna(-300.0))
    ends = {line: band_of(filled, PASSED, line, last) for line in (POST, HIGHWAY, DEEPNORM)}
    apart = {line: band_of(filled, APART, line, last) for line in ends}
    depths = sorted(evidence_rows(rows, PASSED).x.unique())
    text = ", ".join(f"10^{band_of(filled, PASSED, POST, x).mean:.1f} at {x:.0f}" for x in depths)
    sentence = (
        f"The gradient at the input over that at the last state is {text} layers with post-norm, and 10^{ends[HIGHWAY].mean:.2f} at "
        f"{last:.0f} with the highway. Tokens are apart by 10^{apart[POST].mean:.1f} and 10^{apart[HIGHWAY].mean:.2f} there."
    )
    keeps = {line: true_of_all((is_on(ends[line], LOW), is_on(ends[line], HIGH))) for line in (HIGHWAY, DEEPNORM)}
    deep = Extension(f"DeepNorm's skips and start, which keep 10^{ends[DEEPNORM].mean:.2f}", keeps[DEEPNORM])
    middle = band_of(filled, PASSED, POST, 64)
    halved = Extension(
        f"the source's reason, half of the gradient lost in every layer (10^{middle.mean:.1f} at 64)",
        is_on(middle, HALVED),
    )
    return judge(
        sentence, ends[HIGHWAY], "more seeds", [deep, halved], **by_parts((is_on(ends[POST], LOST), keeps[HIGHWAY]))
    )
