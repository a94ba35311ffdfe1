from rankfall import Decision, Read, Threshold, band, compare, evidence_rows, judge
from studies.claims.rules import slopes
from studies.claims.vanishing_gradients.names import GRADIENT, WEIGHTS

VANISHES = Threshold(0.5, "above", "power of what tokens differ by in a gradient", "queries and keys")
STAYS = Threshold(0.1, "below", "power of what tokens differ by in a gradient", "the other weights")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    powers = {part: band(slopes(evidence_rows(rows, GRADIENT, part), log=True)) for part in WEIGHTS}
    text = (
        "Where tokens differ by e, gradients go like "
        + ", ".join(f"e^{power.mean:.2f} ({part})" for part, power in powers.items())
        + "."
    )
    scores = {compare(powers[part], VANISHES) for part in ("queries", "keys")}
    others = {compare(power, STAYS) for part, power in powers.items() if part not in ("queries", "keys")}
    return judge(
        text,
        powers["queries"],
        "smaller differences between tokens",
        undecided="undecided" in scores | others,
        holds=(scores, others) == ({"above"}, {"below"}),
        in_part="above" in scores,
        contradicted=True,
    )
