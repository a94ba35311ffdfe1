from rankfall import Decision, Extension, Read, Threshold, band, band_of, evidence_rows, is_on, judge, within
from studies.claims.rules import by_parts, first_crossing, lies_between
from studies.claims.score_scales.names import ALONE, NOISE, OWN, SLOWER, WRONG
from studies.claims.score_scales.reading import measured_lines

AVERAGES = Threshold(0.2, "below", WRONG, SLOWER)
SPREADS = Threshold(0.8, "below", WRONG, NOISE)
LOW_OWN, HIGH_OWN = within(
    1, 0.1, "scale at which half of the weight is on the token itself, over the critical one", ALONE
)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(evidence_rows(rows, WRONG).x.max())
    noise, like = (band_of(rows, WRONG, name, last) for name in (NOISE, SLOWER))
    crossings = {
        name: band(first_crossing(group, 0.5) for _, group in evidence_rows(rows, OWN, name).groupby("seed"))
        for name in measured_lines(rows, OWN)
    }
    answers = {name: lies_between(value, LOW_OWN, HIGH_OWN) for name, value in crossings.items()}
    sentence = (
        f"Cosines times sqrt(log n), at {last:,.0f} tokens and twice the critical factor, "
        f"have squared weights that sum to {like.mean:.2g}: "
        f"attention averages. Times log n, half of the weight is on the token itself at {crossings[ALONE].mean:.2f} times the scale of "
        "theory."
    )
    extends = [
        Extension(
            f"independent scores: times log n, at twice what is critical for sqrt(log n), their sum of squared weights is "
            f"{noise.mean:.3f}, and attention sees one token",
            is_on(noise, SPREADS),
        ),
        *(
            Extension(
                f"cosines and {name} times sqrt(log n): {value.mean:.2f} times the scale of theory", answers[name]
            )
            for name, value in crossings.items()
            if name != ALONE
        ),
    ]
    parts = (is_on(like, AVERAGES), answers[ALONE])
    return judge(sentence, crossings[ALONE], "more tokens", extends, **by_parts(parts))
