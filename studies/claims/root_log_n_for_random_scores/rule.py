import numpy as np

from rankfall import Band, Decision, Read, Threshold, band, compare, evidence_rows, judge
from studies.claims.parts import line
from studies.claims.rules import slopes
from studies.claims.score_scales.limits import critical_of_noise, decay_of_squares, squares_of_weights
from studies.claims.score_scales.names import SHARES, SQUARES
from studies.claims.score_scales.reading import CLOSE, lines_of, rho_of

FALLS = Threshold(
    0.0, "below", "power of the number of tokens in the sum of squared weights", "under the critical scale"
)
REACHED = Threshold(
    CLOSE, "below", "distance of the extrapolated sum of squared weights from its limit", "over the critical scale"
)
THRESHOLDS = (FALLS, REACHED)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    below, gaps, said, missed = [], [], [], []
    for name in lines_of(rows, SQUARES):
        rho, share = rho_of(name), SHARES[name.split(", ")[1]]
        found = evidence_rows(rows, SQUARES, name)
        if share < 1:
            fall = band(slopes(found, log=True))
            below.append(compare(fall, FALLS))
            theory = decay_of_squares(share * 2**0.5)
            missed += [name] * (not fall.low <= theory <= fall.high)
            said.append(f"n^{fall.mean:.2f} (theory {theory:.2f}) at {name}")
        else:
            limit = squares_of_weights(rho, share * critical_of_noise(rho))
            reached = band(line(1 / np.log(one.x), one.value)[1] for _, one in found.groupby("seed"))
            gaps.append(Band(reached.mean - limit, reached.low - limit, reached.high - limit, reached.seeds))
            missed += [name] * (not reached.low <= limit <= reached.high)
            said.append(f"{reached} (theory {limit:.3f}) at {name}")
    worst = max(gaps, key=lambda one: abs(one.mean))
    text = f"The sum of squared weights goes, over the number of tokens and extrapolated in 1 / log n, like {'; '.join(said)}."
    if missed:
        text += f" Intervals exclude theory's number at {'; '.join(missed)}."
    far = [one for one in gaps if one.low > REACHED or one.high < -REACHED]
    near = [one for one in gaps if one.low > -REACHED and one.high < REACHED]
    return judge(
        text,
        worst,
        "more seeds, or more tokens: corrections are of order 1 / log n",
        contradicted="above" in below,
        undecided="undecided" in below or len(far) + len(near) < len(gaps),
        in_part=bool(far),
        holds=True,
    )
