"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from rankfall.report.claim import Claim, Decision, Read, Threshold, band, band_of, compare, evidence_rows, judge

LOSS = "loss in nats, by training step"
RIGHT = "share of right answers, by training step"
LEARNED = Threshold(0.8, "above", RIGHT, "causal, learned positions; else undecided")
LEARNED_MASKED = Threshold(0.6, "above", RIGHT, "masked, learned positions; else undecided")
NEAR = Threshold(0.1, "below", "share of right answers with learned positions less that without", "causal")
FAR = Threshold(0.3, "above", "share of right answers with learned positions less that without", "masked")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    right = {
        (task, position): band_of(rows, RIGHT, f"{task}, {position} positions", last)
        for task in ("causal", "masked")
        for position in ("learned", "no")
    }
    said = "Right answers with learned positions and without: " + "; ".join(
        f"{task} {right[task, 'learned'].mean:.0%} and {right[task, 'no'].mean:.0%}" for task in ("causal", "masked")
    )
    loss = {position: band_of(rows, LOSS, f"causal, {position} positions", last).mean for position in ("learned", "no")}
    gaps = {
        task: band(
            evidence_rows(rows, RIGHT, f"{task}, learned positions", last).value.to_numpy()
            - evidence_rows(rows, RIGHT, f"{task}, no positions", last).value.to_numpy()
        )
        for task in ("causal", "masked")
    }
    said += (
        f". Causal ones without positions lose {gaps['causal'].mean:.3f} ({gaps['causal'].low:.3f} to {gaps['causal'].high:.3f}) of the "
        f"answers; their loss is {loss['no']:.2f} nats, and {loss['learned']:.2f} with positions"
    )
    learned = [compare(right["causal", "learned"], LEARNED), compare(right["masked", "learned"], LEARNED_MASKED)]
    lazy = learned != ["above", "above"]
    found = compare(gaps["causal"], NEAR), compare(gaps["masked"], FAR)
    return judge(
        said + ".",
        gaps["masked"],
        "models with positions that have learned the task" if lazy else "more seeds or steps",
        undecided=lazy or "undecided" in found,
        holds=found == ("below", "above"),
        contradicted=found == ("above", "below"),
        in_part=True,
    )


CLAIMS = (
    Claim(
        "order_without_positions",
        "Without positions causal language models stay competitive with those that have them, and masked ones do not.",
        "Haviv, Ram, Press, Izsak and Levy: Transformer language models without positional encodings still learn positional "
        "information, 2022",
        "https://arxiv.org/abs/2203.16634",
        ("second-hand",),
        "Pre-norm models of 2 layers of 4 heads, width 32, trained for 1500 steps on texts of 24 tokens of 8 symbols, in which the "
        "next token follows from the "
        "last two, a tenth noise; 15% hidden in masked ones. The source trains models of up to 1.3 billion parameters on text.",
        "It holds if without positions causal models get at most a tenth fewer answers right than with learned ones, and masked "
        "ones at least three tenths "
        "fewer, with whole intervals over seeds, where models with positions get 80% and 60% right; in part if one of both.",
        decide,
        shown=RIGHT,
        thresholds=(LEARNED, LEARNED_MASKED, NEAR, FAR),
        place=720,
        changed="600 training steps became 1500, at a rate of .01 instead of .003: causal models were still improving.",
    ),
)
