from rankfall import Decision, Extension, Read, Threshold, band, band_of, evidence_rows, is_on, judge
from studies.claims.massive_token.names import DRAWN, ENTROPY, RANK, SHARE
from studies.claims.rules import by_need

LOW = Threshold(1.1, "below", RANK, "all tokens, at the greatest length")
KEPT = Threshold(0.9, "above", "stable rank without the first token at its greatest length over that at its least")
DOUBLED = Threshold(2.0, "above", "attention on the first token at its greatest length over that at its least")
# Zero, up to rounding.
BOUNDED = Threshold(-1e-9, "above", "share of energy less its bound, and the bound of the entropy less the entropy")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    short, long = float(rows.x.min()), float(rows.x.max())
    share, most, entropy, least = (
        evidence_rows(rows, quantity, line).value.to_numpy()
        for quantity in (SHARE, ENTROPY)
        for line in ("measured", "bound")
    )
    over, under = (share - most).min(), (least - entropy).min()
    rank, first = band_of(rows, RANK, "all tokens", long), band_of(rows, RANK, "all tokens", short)
    without, alone = (evidence_rows(rows, RANK, "without the first token", x).value.to_numpy() for x in (long, short))
    before, after = (evidence_rows(rows, DRAWN, "last layer", x).value.to_numpy() for x in (short, long))
    sentence = (
        f"With a first token {long:.0f} times as long the stable rank falls from {first.mean:.2f} to {rank.mean:.4f}, at least as "
        "far as the bounds say "
        f"(share above its bound by {over:.2g} or more, entropy below by {under:.2g}); without the first token it is "
        f"{without.mean():.2f} ({alone.mean():.2f} before)."
    )
    extends = [
        Extension(
            f"attention of networks with random weights, which would double: on the long token it goes from {before.mean():.3f} to "
            f"{after.mean():.3f}",
            is_on(band(after / before), DOUBLED),
        )
    ]
    bounded = over >= BOUNDED and under >= BOUNDED
    conditions = by_need(is_on(rank, LOW) if bounded else False, is_on(band(without / alone), KEPT))
    return judge(sentence, rank, "more seeds", extends, **conditions)
