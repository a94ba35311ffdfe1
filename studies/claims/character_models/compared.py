"""Decide whether one changed part lowers the test loss of character models."""

from rankfall import DataFrame, Decision, Threshold, band, band_of, evidence_rows, is_on, judge
from studies.claims.character_models.names import LOSS, MIDDLE, USUAL

LESS = Threshold(0.0, "below", "test loss with the changed part less the usual one's")


def compare_losses(rows: DataFrame, line: str) -> Decision:
    changed, usual = (evidence_rows(rows, LOSS, one, MIDDLE).value.to_numpy() for one in (line, USUAL))
    less, losses = band(changed - usual), [band_of(rows, LOSS, one, MIDDLE) for one in (line, USUAL)]
    said = (
        f"Test loss in nats: {losses[0].mean:.3f} with {line}, {losses[1].mean:.3f} usually; the difference is {less}."
    )
    answer = is_on(less, LESS)
    return judge(said, less, "more seeds", holds=answer is True, contradicted=answer is False)
