import numpy as np

from rankfall import Band, DataFrame, Decision, Extension, Read, Threshold, band, evidence_rows, is_on, judge
from studies.claims.rules import by_parts
from studies.claims.second_half_contributes_less.names import BIRTH, EFFECT, SHARE, TRAINED

LESS = Threshold(0.5, "below", "mean contribution of the second half over that of the first, after training")
EFFECTLESS = Threshold(0.5, "below", "mean effect of layers of the second half over that of the first, after training")
EARLIER = Threshold(0.0, "below", "the first of these after training less that before training")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    shares, effects = (
        {line: halves(rows, quantity, line) for line in (TRAINED, BIRTH)} for quantity in (SHARE, EFFECT)
    )
    texts = {line: f"{shares[line][0]} of the contribution and {effects[line][0]} of the effect" for line in shares}
    sentence = (
        f"Layers of the second half have {texts[TRAINED]} of the first half after training, and {texts[BIRTH]} before."
    )
    trained = band(shares[TRAINED][1] - shares[BIRTH][1])
    learned = Extension(
        f"a difference that training makes (the contribution's ratio changes by {trained})", is_on(trained, EARLIER)
    )
    parts = (is_on(shares[TRAINED][0], LESS), is_on(effects[TRAINED][0], EFFECTLESS))
    return judge(sentence, shares[TRAINED][0], "more seeds", [learned], **by_parts(parts))


def halves(rows: DataFrame, quantity: str, line: str) -> tuple[Band, np.ndarray]:
    """Return the mean over the second half of the layers over that of the first, by seed, with its interval."""
    evidence = evidence_rows(rows, quantity, line)
    middle = evidence_rows(rows, SHARE).x.max() / 2
    ratios = [
        group[group.x > middle].value.mean() / group[group.x <= middle].value.mean()
        for _, group in evidence.groupby("seed")
    ]
    return band(ratios), np.array(ratios)
