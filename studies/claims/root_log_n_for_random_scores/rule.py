import numpy as np

from rankfall import Band, Decision, Read, Threshold, band, compare, evidence_rows, judge
from studies.claims.parts import fit_line
from studies.claims.rules import slopes
from studies.claims.score_scales.limits import critical_of_noise, decay_of_squares, squares_of_weights
from studies.claims.score_scales.names import SHARES, SQUARES
from studies.claims.score_scales.reading import CLOSE, measured_lines, parse_rho

FALLS = Threshold(
    0.0, "below", "power of the number of tokens in the sum of squared weights", "under the critical scale"
)
REACHED = Threshold(
    CLOSE, "below", "distance of the extrapolated sum of squared weights from its limit", "over the critical scale"
)
THRESHOLDS = (FALLS, REACHED)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    below, gaps, sentences, missed = [], [], [], []
    for name in measured_lines(rows, SQUARES):
        rho, share = parse_rho(name), SHARES[name.split(", ")[1]]
        squares = evidence_rows(rows, SQUARES, name)
        if share < 1:
            fall = band(slopes(squares, log=True))
            below.append(compare(fall, FALLS))
            theory = decay_of_squares(share * 2**0.5)
            missed += [name] * (not fall.low <= theory <= fall.high)
            sentences.append(f"n^{fall.mean:.2f} (theory {theory:.2f}) at {name}")
        else:
            limit = squares_of_weights(rho, share * critical_of_noise(rho))
            reached = band(fit_line(1 / np.log(group.x), group.value)[1] for _, group in squares.groupby("seed"))
            gaps.append(Band(reached.mean - limit, reached.low - limit, reached.high - limit, reached.seeds))
            missed += [name] * (not reached.low <= limit <= reached.high)
            sentences.append(f"{reached} (theory {limit:.3f}) at {name}")
    worst = max(gaps, key=lambda gap: abs(gap.mean))
    text = f"Sum of squared weights, as a power of the number n of tokens or extrapolated in 1 / log n: {'; '.join(sentences)}."
    if missed:
        text += f" Intervals exclude theory's number at {'; '.join(missed)}."
    far = [gap for gap in gaps if gap.low > REACHED or gap.high < -REACHED]
    near = [gap for gap in gaps if gap.low > -REACHED and gap.high < REACHED]
    return judge(
        text,
        worst,
        "more seeds, or more tokens: corrections are of order 1 / log n",
        contradicted="above" in below,
        undecided="undecided" in below or len(far) + len(near) < len(gaps),
        in_part=bool(far),
        holds=True,
    )
