from rankfall import Decision, Extension, Read, Threshold, band, band_of, compare, evidence_rows, is_on, judge
from studies.claims.sinks_need_normalisation.names import COPIED, DRAWN, SOFTMAX

SINK = 0.3  # the limit of the source
A_SINK = "softmax models with a sink in every seed: larger ones, trained for longer and on text, as the source's"
SIGMOID = "sigmoid, no normalisation"
SQUARED = {
    "relu2, rows sum to one": True,
    "relu2, no normalisation": False,
}  # not in the source; True: a sink is expected
APART = Threshold(SINK, "split at", DRAWN, "above it where rows sum to one, below it where they need not")
LESS = Threshold(0.0, "below", "weight on the first token with a sigmoid less that with softmax", "to hold in part")
LEARNED = Threshold(0.9, "above", COPIED, "softmax and sigmoid; else undecided")
THRESHOLDS = (APART, LESS, LEARNED)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    found = {line: band_of(rows, DRAWN, line, last) for line in (SOFTMAX, SIGMOID, *SQUARED)}
    copied = {line: band_of(rows, COPIED, line, last) for line in found}
    texts = {line: f"{line} {found[line].mean:.2f}, {copied[line].mean:.0%}" for line in found}
    said = f"Weight on the first token, and copies that are right: {texts[SOFTMAX]}; {texts[SIGMOID]}."
    lazy = [line for line in found if compare(copied[line], LEARNED) != "above"]
    answers = {line: compare(one, APART) for line, one in found.items()}
    extends = [
        Extension(
            texts[line], None if line in lazy or answers[line] == "undecided" else (answers[line] == "above") == sink
        )
        for line, sink in SQUARED.items()
    ]
    idle = [line for line in (SOFTMAX, SIGMOID) if line in lazy]
    wants = [f"models that have learned to copy with {', '.join(idle)}"] if idle else []
    wants += [A_SINK] if answers[SOFTMAX] != "above" else []
    with_softmax, with_sigmoid = (
        evidence_rows(rows, DRAWN, line, last).value.to_numpy() for line in (SOFTMAX, SIGMOID)
    )
    less = is_on(band(with_sigmoid - with_softmax), LESS)
    return judge(
        said,
        found[SOFTMAX],
        "; ".join(wants) or "more seeds or steps",
        extends,
        undecided=bool(wants) or answers[SIGMOID] == "undecided" or less is None,
        holds=answers[SIGMOID] == "below",
        in_part=less is True,
        contradicted=True,
    )
