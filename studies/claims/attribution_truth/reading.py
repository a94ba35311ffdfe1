"""Read the evidence of `attribution_truth` for the rules that share it."""

from collections.abc import Mapping

from rankfall import DataFrame, Decision, Extension, Read, Threshold, band, compare, evidence_rows, is_on, judge
from studies.claims.attribution_truth.names import RANKS, RIGHT
from studies.claims.rules import true_of_all

NAMES = {
    1: "a sink",
    2: "heads that cancel",
    3: "a copy of a copy",
    4: "what is written is not read",
    5: "what is written is read",
    6: "a key that moves attention",
    7: "a saturated answer",
}
ALL_RIGHT = Threshold(1.0, "at", RIGHT, "decomposed, in all seven networks")
BY_HAND = Threshold(
    0.0,
    "above",
    "chance to put a needed token above a needless one, less that of the other method",
    "to extend to networks made by hand",
)
IN_RANKS = Threshold(
    0.0, "above", "rank correlation with the effect of a token behind the first layer, less that of the other method"
)


def compare_methods(
    read: Read, first: tuple[str, ...], second: tuple[str, ...], among: str = "", exact: bool = False
) -> Decision:
    """Decide whether methods are right more often than others in networks with random weights. The verdict also describes networks built by
    hand. With `exact`, the first methods must be right everywhere there."""
    rows = read("evidence")
    pairs = [(method, other) for method in first for other in second]
    means = [
        band(means_by_seed(rows, among + RANKS, method) - means_by_seed(rows, among + RANKS, other))
        for method, other in pairs
    ]
    single = {
        (method, other, layer): compare(band(part.groupby("seed").value.mean()), IN_RANKS)
        for method, other in pairs
        for layer, part in differences_by_layer(rows, among + RANKS, method, other).groupby("x")
    }
    at_last = [answer for (_, _, layer), answer in single.items() if layer == max(key[2] for key in single)]
    gaps_by_hand = [
        band(means_by_seed(rows, among + RIGHT, method) - means_by_seed(rows, among + RIGHT, other))
        for method, other in pairs
    ]
    answers = [compare(gain, IN_RANKS) for gain in means]
    lower = [f"{method} than {other}" for (method, other), answer in zip(pairs, answers) if answer == "below"]
    wrong = exact and evidence_rows(rows, RIGHT, first[0]).value.min() < ALL_RIGHT - 1e-9
    by_hand = [is_on(gain, BY_HAND) for gain in gaps_by_hand]
    listed = "; ".join(f"{method} {format_right(rows, method, among)}" for method in (*first, *second))
    return judge(
        f"Rank correlation with the effect of a token, after the first layer, after the last and in the mean of layers behind the first: "
        f"{'; '.join(f'{method} {format_ranks(rows, method, among)}' for method in (*first, *second))}. {list_layers(single)}"
        f" Decidedly lower in the mean: {', '.join(lower) or 'none'}.",
        means[0],
        "more networks",
        holds=set(answers) == {"above"} and "below" not in at_last,
        in_part="above" in answers,  # in the mean of layers: the best of many layers would say so by chance
        contradicted="below" in answers,
        extends=[
            Extension(
                f"networks made by hand (right: {listed})",
                true_of_all([*by_hand, not wrong]),
            )
        ],
    )


def list_layers(single: Mapping[tuple[str, str, float], str]) -> str:
    """Say at which layers behind the first a method is decidedly above another."""
    parts = []
    for method, other in dict.fromkeys((method, other) for method, other, _ in single):
        layers = [
            f"{layer:.0f}" for (a, b, layer), answer in single.items() if (a, b, answer) == (method, other, "above")
        ]
        parts.append(f"{method} over {other} at {', '.join(layers) or 'none'}")
    return f"Decidedly higher at layers: {'; '.join(parts)}."


def format_ranks(rows: DataFrame, method: str, among: str = "") -> str:
    ranks = evidence_rows(rows, among + RANKS, method)
    first, last = (ranks[ranks.x == x].value.mean() for x in (ranks.x.min(), ranks.x.max()))
    return f"{first:.2f}, {last:.2f} and {means_by_seed(rows, among + RANKS, method).mean():.2f}"


def format_right(rows: DataFrame, method: str, among: str = "") -> str:
    right = evidence_rows(rows, among + RIGHT, method)
    wrong = [NAMES[int(x)] for x, part in right.groupby("x") if part.value.mean() < ALL_RIGHT - 1e-9]
    return f"{right.value.mean():.2f}" + f" (not in: {', '.join(wrong)})" * bool(wrong)


def differences_by_layer(rows: DataFrame, quantity: str, method: str, other: str) -> DataFrame:
    """Return differences of two methods, for layers after the first."""
    both = evidence_rows(rows, quantity, method).merge(evidence_rows(rows, quantity, other), on=["x", "seed"])
    both["value"] = both.value_x - both.value_y
    return both[both.x > 1] if both.x.max() > 1 else both


def means_by_seed(rows: DataFrame, quantity: str, method: str) -> DataFrame:
    """Return means over networks, or over layers after the first, by seed."""
    evidence = evidence_rows(rows, quantity, method)
    if quantity.endswith(RANKS):
        evidence = evidence[evidence.x > 1] if evidence.x.max() > 1 else evidence
    return evidence.groupby("seed").value.mean()
