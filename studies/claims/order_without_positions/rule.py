from rankfall import Decision, Read, Threshold, band_of, is_on, judge
from studies.claims.order_without_positions.names import LOSS, RIGHT
from studies.claims.rules import by_known_parts, difference

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
    sentence = "Right answers with learned positions and without: " + "; ".join(
        f"{task} {right[task, 'learned'].mean:.0%} and {right[task, 'no'].mean:.0%}" for task in ("causal", "masked")
    )
    loss = {position: band_of(rows, LOSS, f"causal, {position} positions", last).mean for position in ("learned", "no")}
    gaps = {
        task: difference(rows, RIGHT, f"{task}, learned positions", f"{task}, no positions", last)
        for task in ("causal", "masked")
    }
    sentence += (
        f". Causal models without positions get a share of {gaps['causal'].mean:.3f} ({gaps['causal'].low:.3f} to "
        f"{gaps['causal'].high:.3f}) fewer answers right; their loss is {loss['no']:.2f} nats, and {loss['learned']:.2f} with positions"
    )
    if not (is_on(right["causal", "learned"], LEARNED) and is_on(right["masked", "learned"], LEARNED_MASKED)):
        return judge(sentence + ".", gaps["masked"], "models with positions that have learned the task")
    parts = is_on(gaps["causal"], NEAR), is_on(gaps["masked"], FAR)
    return judge(sentence + ".", gaps["masked"], "more seeds or steps", **by_known_parts(parts))
