from rankfall import Band, Decision, Extension, Read, Threshold, band, evidence_rows, is_on, judge
from studies.claims.rules import by_parts, slopes, true_of_all
from studies.claims.width_collapse.names import FOURTH, MASKS, WEIGHTS

GROWS = Threshold(0.8, "above", "power of the number of tokens in the stable rank of X X^T")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    all_see, causal = (
        {kind: band(slopes(evidence_rows(rows, FOURTH.format(1), f"{kind}, {mask}"), log=True)) for kind in WEIGHTS}
        for mask in MASKS
    )
    sentence = (
        f"Without the mean weight, where all see all, the stable rank of X X^T grows like {_say_powers(all_see)}."
    )
    extends = (
        Extension(
            f"causal masks: {_say_powers(causal)}", true_of_all(is_on(power, GROWS) for power in causal.values())
        ),
    )
    parts = [is_on(power, GROWS) for power in all_see.values()]
    return judge(sentence, all_see[WEIGHTS[0]], "more tokens or seeds", extends, **by_parts(parts))


def _say_powers(powers: dict[str, Band]) -> str:
    return " and ".join(f"T^{power.mean:.2f} ({name})" for name, power in powers.items())
