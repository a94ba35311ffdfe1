"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from rankfall.report.claim import (
    Claim,
    Decision,
    Extension,
    Read,
    Threshold,
    band,
    band_of,
    compare,
    evidence_rows,
    is_on,
    judge,
)

DRAWN = "weight on the first token where nothing is to be copied, by training step"
COPIED = "share of copies that are right, by training step"
TAKEN = "weight on the key of its own, by training step"
SOFTMAX, OWN_KEY = "softmax", "softmax with a learned key of no value"
SIGMOID = "sigmoid, no normalisation"
SQUARED = {
    "relu2, rows sum to one": True,
    "relu2, no normalisation": False,
}  # not in the source; True: a sink is expected
SINK = 0.3  # the limit of the source
APART = Threshold(SINK, "split at", DRAWN, "above it where rows sum to one, below it where they need not")
LESS = Threshold(0.0, "below", "weight on the first token with a sigmoid less that with softmax", "to hold in part")
LEARNED = Threshold(0.9, "above", COPIED, "softmax and sigmoid; else undecided")
NEEDED = Threshold(SINK, "above", DRAWN, "softmax without the key; else undecided")
TAKES = Threshold(SINK, "above", TAKEN)
HALVED = Threshold(0.0, "below", "weight on the first token with the key less half of that without")
A_SINK = "softmax models with a sink in every seed: larger ones, trained for longer and on text, as the source's"
PAPER = "Gu, Pang, Du, Liu, Zhang, Du, Wang and Lin: When attention sink emerges in language models, 2024"
LINK = "https://arxiv.org/abs/2410.10781"
SETTING = (
    "Causal pre-norm models of one layer and one head, width 32, trained for 1500 steps of 16 texts of 24 tokens: a Markov chain of "
    "16 symbols, in which "
    "behind two of them the token before comes again. The source trains LLaMA-like models of 60 million parameters on text. "
)


def need(read: Read) -> Decision:
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


def key(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    before, after = (evidence_rows(rows, DRAWN, line, last).value.to_numpy() for line in (SOFTMAX, OWN_KEY))
    taken, drawn = band_of(rows, TAKEN, OWN_KEY, last), band(after)
    fallen = compare(band(after - before / 2), HALVED)
    plain = band(before)
    said = (
        f"With a learned key without a value the first token has {drawn.mean:.2f} of the weight instead of {plain.mean:.2f}, and "
        f"the key {taken.mean:.2f}."
    )
    no_sink = compare(plain, NEEDED) != "above"
    answers = (fallen, compare(taken, TAKES))
    return judge(
        said,
        drawn,
        A_SINK if no_sink else "more seeds",
        undecided=no_sink or "undecided" in answers,
        holds=answers == ("below", "above"),
        contradicted=answers == ("above", "below"),
        in_part=True,
    )


CLAIMS = (
    Claim(
        "sinks_need_normalisation",
        "Attention sinks come from weights that must sum to one: without that there are none.",
        PAPER,
        LINK,
        ("table", "second-hand"),
        SETTING,
        "It holds if where there is nothing to copy the first token gets more than 0.3 with softmax, and less with a sigmoid that is not "
        "normalised, in models that get nine tenths of the copies right, with whole intervals over seeds; in part if with the sigmoid it "
        "gets more than 0.3 too, but less than with softmax; contradicted if it gets no less. Squared ReLU is ours and decides nothing.",
        need,
        shown=DRAWN,
        thresholds=(APART, LESS, LEARNED),
        place=700,
        changed="Squared ReLU, which the bench adds, had decided too; what is still a sink, but a smaller one, counts in part. "
        "500 training steps became 1500, at a rate of .01 instead of .003, at which models had not learned to copy.",
    ),
    Claim(
        "a_key_of_its_own_takes_the_sink",
        "A learned key without a value takes the attention that would go to the first token.",
        PAPER,
        LINK,
        ("table", "second-hand"),
        SETTING,
        "It holds if with the key the first token gets less than half of what softmax gives it, and the key more than 0.3, with "
        "whole intervals; it needs a "
        "softmax model whose first token gets more than 0.3.",
        key,
        shown=DRAWN,
        thresholds=(HALVED, TAKES, NEEDED),
        place=710,
        changed="500 training steps became 1500, at a rate of .01 instead of .003, at which models had not learned to copy.",
    ),
)
