from rankfall import Decision, Read, Threshold, band, band_of, evidence_rows, is_on, judge
from studies.claims.character_models.names import ALIGNED, EXCLUSIVE, LONG, LOSS, MIDDLE, SHORT, USUAL
from studies.claims.rules import by_need, true_of_all

LESS = Threshold(0.0, "below", "loss with exclusive attention less that of the usual, at the longest")
MORE = Threshold(0.0, "below", "the same difference at the longest less that at the shortest")
CLOSE = Threshold(0.1, "above", ALIGNED, "usual, at the longest")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    gains = {
        x: evidence_rows(rows, LOSS, EXCLUSIVE, x).value.to_numpy()
        - evidence_rows(rows, LOSS, USUAL, x).value.to_numpy()
        for x in (SHORT, MIDDLE, LONG)
    }
    close = band_of(rows, ALIGNED, USUAL, LONG)
    less, more = band(gains[LONG]), band(gains[LONG] - gains[SHORT])
    sentence = (
        "Loss in nats with exclusive attention less the usual: "
        + ", ".join(f"{band(difference)} at {x} tokens" for x, difference in gains.items())
        + f". The cosine of usual attention's output and the token's own value is {close}."
    )
    grows = true_of_all((is_on(more, MORE), is_on(close, CLOSE)))
    return judge(sentence, less, "more seeds", **by_need(is_on(less, LESS), grows))
