from typing import Any

from rankfall import Decision, Extension, Read, Threshold, band, band_of, evidence_rows, is_on, judge, within
from studies.claims.rules import by_parts, lies_between
from studies.claims.score_scales.names import ALONE, NOISE, OWN, SLOWER, WRONG
from studies.claims.score_scales.reading import lines_of

AVERAGES = Threshold(0.2, "below", WRONG, SLOWER)
SPREADS = Threshold(0.8, "below", WRONG, NOISE)
LOW_OWN, HIGH_OWN = within(
    1, 0.1, "scale at which half of the weight is on the token itself, over the critical one", ALONE
)
THRESHOLDS = (AVERAGES, LOW_OWN, HIGH_OWN, SPREADS)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(evidence_rows(rows, WRONG).x.max())
    noise, like = (band_of(rows, WRONG, name, last) for name in (NOISE, SLOWER))
    crossings = {
        name: band(crossing(one) for _, one in evidence_rows(rows, OWN, name).groupby("seed"))
        for name in lines_of(rows, OWN)
    }
    answers = {name: lies_between(one, LOW_OWN, HIGH_OWN) for name, one in crossings.items()}
    said = (
        f"Cosines times sqrt(log n), at {last:,.0f} tokens and twice the critical factor, "
        f"have squared weights that sum to {like.mean:.2g}: "
        f"attention averages. Times log n, half of the weight is on the token itself at {crossings[ALONE].mean:.2f} times the scale that "
        "theory has."
    )
    extends = [
        Extension(
            f"independent scores: times log n, at twice what is critical for sqrt(log n), their sum of squared weights is "
            f"{noise.mean:.3f}, and attention sees one token",
            is_on(noise, SPREADS),
        ),
        *(
            Extension(
                f"cosines and {name} times sqrt(log n): {one.mean:.2f} times the scale that theory has", answers[name]
            )
            for name, one in crossings.items()
            if name != ALONE
        ),
    ]
    parts = (is_on(like, AVERAGES), answers[ALONE])
    return judge(said, crossings[ALONE], "more tokens", extends, **by_parts(parts))


def crossing(one: Any) -> float:
    """Return the scale at which the token's own share passes one half, interpolated between the measured scales."""
    ordered = one.sort_values("x")
    x, y = list(ordered.x), list(ordered.value)
    for i in range(1, len(x)):
        if y[i] >= 0.5:
            return float(x[i - 1] + (x[i] - x[i - 1]) * (0.5 - y[i - 1]) / (y[i] - y[i - 1]))
    return float("nan")
