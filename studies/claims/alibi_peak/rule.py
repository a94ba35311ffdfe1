from rankfall import DataFrame, Decision, Extension, Read, Threshold, band_of, compare, evidence_rows, judge
from studies.claims.alibi_peak.names import OFF, PEAK

PUBLISHED = "published, t / (e^m - 1)"
EQUAL, WEAK, STRONG = "equal scores", "weak scores", "strong scores"
# Tokens: binomials with t - 1 and with t have peaks 1 / (e^m - 1) = 4 apart, and the sum's own peak is one below. Two entries there are
# equal, up to rounding.
BESIDE = Threshold(5.0, "below", "tokens between the largest entry of the last row and the published peak")
CLOSE = Threshold(0.05, "below", OFF)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    layers = sorted(set(evidence_rows(rows, PEAK, EQUAL).x))
    near = {line: [layer for layer in layers if is_near(rows, line, layer)] for line in (EQUAL, WEAK, STRONG)}
    last = layers[-1]
    off = band_of(rows, OFF, EQUAL, last)
    peaks = {line: band_of(rows, PEAK, line, last).mean for line in (EQUAL, WEAK, STRONG, PUBLISHED)}
    sentence = (
        f"With equal scores rows are C(t - 1 + d, d) e^(-m d), where the published binomial has t, and the largest entry lies within 5 "
        f"tokens of the published peak, at {_list(near[EQUAL])} layers. At {last:.0f} layers it is {peaks[EQUAL]:.0f} tokens back where "
        f"{peaks[PUBLISHED]:.0f} is published; the row is {off.mean:.2g} from the closed form."
    )
    return judge(
        sentence,
        off,
        holds=near[EQUAL] == layers,
        in_part=bool(near[EQUAL]),
        contradicted=True,
        extends=[
            Extension(
                f"{line} of content (so at {_list(near[line])} layers; peak at {peaks[line]:.0f} in the end)",
                near[line] == layers,
            )
            for line in (WEAK, STRONG)
        ],
    )


def is_near(rows: DataFrame, line: str, layer: float) -> bool:
    """Return whether the last row has the published shape and peak."""
    peak, published = (band_of(rows, PEAK, name, layer).mean for name in (line, PUBLISHED))
    return compare(band_of(rows, OFF, line, layer), CLOSE) == "below" and abs(peak - published) <= BESIDE + 1e-6


def _list(layers: list[float]) -> str:
    return ", ".join(f"{layer:.0f}" for layer in layers) or "no number of"
