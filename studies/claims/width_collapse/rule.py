from rankfall import Band, Decision, Extension, Read, Threshold, band_of, is_on, judge
from studies.claims.rules import by_parts, true_of_all
from studies.claims.width_collapse.names import FOURTH, MASKS, USUAL, WEIGHTS

ONE = Threshold(1.1, "below", FOURTH.format(1), "at the most tokens")
ONE_USUAL = Threshold(ONE, "below", USUAL.format(1), "at the most tokens")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())

    def bands_at(kind: str, layer: int, mask: str) -> dict[str, Band]:
        return {scores: band_of(rows, kind.format(layer), f"{scores}, {mask}", last) for scores in WEIGHTS}

    theirs, usual, causal = bands_at(FOURTH, 1, MASKS[0]), bands_at(USUAL, 1, MASKS[0]), bands_at(FOURTH, 1, MASKS[1])
    second = bands_at(USUAL, 2, MASKS[0])
    sentence = f"At {last:.0f} tokens, where all see all, the stable rank of X X^T after one layer is {_say(theirs)}."
    extends = (
        Extension(
            f"the usual stable rank, that of X itself: {_say(usual)} after one layer, {_say(second)} after two",
            true_of_all(is_on(rank, ONE_USUAL) for rank in usual.values()),
        ),
        Extension(f"causal masks: {_say(causal)}", true_of_all(is_on(rank, ONE) for rank in causal.values())),
    )
    parts = [is_on(rank, ONE) for rank in theirs.values()]
    return judge(sentence, theirs[WEIGHTS[0]], "more tokens or seeds", extends, **by_parts(parts))


def _say(ranks: dict[str, Band]) -> str:
    return " and ".join(f"{rank.mean:.3g} ({name})" for name, rank in ranks.items())
