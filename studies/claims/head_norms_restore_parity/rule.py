from rankfall import Decision, Extension, Read, Threshold, band_of, is_on, judge
from studies.claims.character_models.names import FIRST, LOSS, MIDDLE, NORMED, USUAL, VARIANCE
from studies.claims.rules import by_parts, difference, true_of_all

LONG = Threshold(1.0, "above", VARIANCE, f"{USUAL}, at the first token: ten times the last one's")
EQUAL = Threshold(0.1, "below", VARIANCE, f"{NORMED}, at the first token")
LESS = Threshold(0.0, "below", "loss with normed heads less the usual, after training")
SINK = Threshold(0.0, "below", "weight on the first token with normed heads less the usual, after training")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    start = {line: band_of(rows, VARIANCE, line, 0) for line in (USUAL, NORMED)}
    loss, first = (difference(rows, quantity, NORMED, USUAL, MIDDLE) for quantity in (LOSS, FIRST))
    usual = band_of(rows, FIRST, USUAL, MIDDLE)
    sentence = (
        f"Before training the first token's head outputs have {10 ** start[USUAL].mean:.3g} times the mean square of the last one's, "
        f"{10 ** start[NORMED].mean:.3g} times with normed heads. After training, normed heads change the test loss by {loss} nats."
    )
    parity = true_of_all((is_on(start[USUAL], LONG), is_on(start[NORMED], EQUAL)))
    sink = Extension(
        f"a smaller sink: the first token's weight of {usual.mean:.3g} changes by {first}", is_on(first, SINK)
    )
    return judge(sentence, loss, "more seeds or steps", [sink], **by_parts((parity, is_on(loss, LESS))))
