"""Read the evidence of `character_models` for the rules that share it."""

from rankfall import DataFrame, Decision, Threshold, band_of, is_on, judge
from studies.claims.character_models.names import LOSS, MIDDLE, USUAL
from studies.claims.rules import difference

LESS = Threshold(0.0, "below", "test loss with the changed part less the usual one's")


def compare_losses(rows: DataFrame, line: str) -> Decision:
    """Decide whether one changed part lowers the test loss."""
    less = difference(rows, LOSS, line, USUAL, MIDDLE)
    losses = [band_of(rows, LOSS, kind, MIDDLE) for kind in (line, USUAL)]
    sentence = (
        f"Test loss in nats: {losses[0].mean:.3f} with {line}, {losses[1].mean:.3f} usually; the difference is {less}."
    )
    answer = is_on(less, LESS)
    return judge(sentence, less, "more seeds", holds=answer is True, contradicted=answer is False)
