from rankfall import Decision, Extension, Read, Threshold, band_of, compare, is_on, judge
from studies.claims.rules import difference
from studies.claims.sinks_need_normalisation.names import COPIED, DRAWN, SOFTMAX

SINK = 0.3  # the limit of the source
A_SINK = "softmax models with a sink in every seed: larger ones, trained for longer and on text, as the source's"
SIGMOID = "sigmoid, no normalisation"
# Not in the source. True: a sink is expected.
SQUARED = {"relu2, rows sum to one": True, "relu2, no normalisation": False}
APART = Threshold(SINK, "split at", DRAWN, "above it where rows sum to one, below it where they need not")
LESS = Threshold(0.0, "below", "weight on the first token with a sigmoid less that with softmax", "to hold in part")
LEARNED = Threshold(0.9, "above", COPIED, "softmax and sigmoid; else undecided")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    weights = {line: band_of(rows, DRAWN, line, last) for line in (SOFTMAX, SIGMOID, *SQUARED)}
    copied = {line: band_of(rows, COPIED, line, last) for line in weights}
    texts = {line: f"{line} {weights[line].mean:.2f}, {copied[line].mean:.0%}" for line in weights}
    sentence = f"Weight on the first token, and copies that are right: {texts[SOFTMAX]}; {texts[SIGMOID]}."
    lazy = [line for line in weights if compare(copied[line], LEARNED) != "above"]
    answers = {line: compare(weight, APART) for line, weight in weights.items()}
    extends = [
        Extension(
            texts[line], None if line in lazy or answers[line] == "undecided" else (answers[line] == "above") == sink
        )
        for line, sink in SQUARED.items()
    ]
    idle = [line for line in (SOFTMAX, SIGMOID) if line in lazy]
    wants = [f"models that have learned to copy with {', '.join(idle)}"] if idle else []
    wants += [A_SINK] if answers[SOFTMAX] != "above" else []
    less = is_on(difference(rows, DRAWN, SIGMOID, SOFTMAX, last), LESS)
    return judge(
        sentence,
        weights[SOFTMAX],
        "; ".join(wants) or "more seeds or steps",
        extends,
        undecided=bool(wants) or answers[SIGMOID] == "undecided" or less is None,
        holds=answers[SIGMOID] == "below",
        in_part=less is True,
        contradicted=True,
    )
