"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rankfall.claims.answers import true_of_all
from rankfall.report.claim import (
    Claim,
    Decision,
    Extension,
    Read,
    Threshold,
    band,
    compare,
    evidence_rows,
    is_on,
    judge,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pandas import DataFrame

RIGHT = "chance that a needed token is above a needless one, by network"
RANKS = "rank correlation with the effect of a token, by layer"
AMONG = "of the other tokens: "
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
SETTING = (
    "Seven networks of one or two layers and five tokens made by hand, so that what the last token depends on is known (in five "
    "rotated bases), and "
    "twelve networks of 6 layers with random weights, where the effect of a token is how far the last state moves when it says the "
    "opposite. "
)


def better(
    read: Read, first: tuple[str, ...], second: tuple[str, ...], among: str = "", exact: bool = False
) -> Decision:
    """Decide whether methods are right more often than others in networks with random weights. The verdict also describes networks built by
    hand. With `exact`, the first methods must be right everywhere there."""
    rows = read("evidence")
    pairs = [(method, other) for method in first for other in second]
    means = [band(by_seed(rows, among + RANKS, one) - by_seed(rows, among + RANKS, other)) for one, other in pairs]
    single = {
        (one, other, layer): compare(band(part.groupby("seed").value.mean()), IN_RANKS)
        for one, other in pairs
        for layer, part in by_layer(rows, among + RANKS, one, other).groupby("x")
    }
    at_last = [answer for (_, _, layer), answer in single.items() if layer == max(key[2] for key in single)]
    hands = [band(by_seed(rows, among + RIGHT, one) - by_seed(rows, among + RIGHT, other)) for one, other in pairs]
    answers = [compare(one, IN_RANKS) for one in means]
    wrong = exact and evidence_rows(rows, RIGHT, first[0]).value.min() < ALL_RIGHT - 1e-9
    by_hand = [is_on(one, BY_HAND) for one in hands]
    listed = "; ".join(f"{method} {say_right(rows, method, among)}" for method in (*first, *second))
    return judge(
        f"Rank correlation with the effect of a token, after the first layer, after the last and in the mean of layers behind the first: "
        f"{'; '.join(f'{method} {say_ranks(rows, method, among)}' for method in (*first, *second))}. {say_layers(single)}"
        f"{say_lower(dict(zip(pairs, answers)))}",
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


def say_layers(single: Mapping[tuple[str, str, float], str]) -> str:
    """Say at which layers behind the first a method is decidedly above another."""
    parts = []
    for one, other in dict.fromkeys((one, other) for one, other, _ in single):
        layers = [f"{layer:.0f}" for (a, b, layer), answer in single.items() if (a, b, answer) == (one, other, "above")]
        parts.append(f"{one} over {other} at {', '.join(layers) or 'none'}")
    return f"Decidedly higher at layers: {'; '.join(parts)}."


def say_lower(answers: Mapping[tuple[str, str], str]) -> str:
    """Say which method is decidedly below which other in the mean of layers."""
    lower = [f"{one} than {other}" for (one, other), answer in answers.items() if answer == "below"]
    return f" Decidedly lower in the mean: {', '.join(lower)}." if lower else ""


def say_ranks(rows: DataFrame, method: str, among: str = "") -> str:
    ranks = evidence_rows(rows, among + RANKS, method)
    first, last = (ranks[ranks.x == x].value.mean() for x in (ranks.x.min(), ranks.x.max()))
    return f"{first:.2f}, {last:.2f} and {by_seed(rows, among + RANKS, method).mean():.2f}"


def say_right(rows: DataFrame, method: str, among: str = "") -> str:
    right = evidence_rows(rows, among + RIGHT, method)
    wrong = [NAMES[int(x)] for x, part in right.groupby("x") if part.value.mean() < ALL_RIGHT - 1e-9]
    return f"{right.value.mean():.2f}" + f" (not in: {', '.join(wrong)})" * bool(wrong)


def by_layer(rows: DataFrame, quantity: str, one: str, other: str) -> DataFrame:
    """Return differences of two methods, for layers after the first."""
    both = evidence_rows(rows, quantity, one).merge(evidence_rows(rows, quantity, other), on=["x", "seed"])
    both["value"] = both.value_x - both.value_y
    return both[both.x > 1] if both.x.max() > 1 else both


def by_seed(rows: DataFrame, quantity: str, method: str) -> DataFrame:
    """Return means over networks, or over layers after the first, by seed."""
    found = evidence_rows(rows, quantity, method)
    if quantity.endswith(RANKS):
        found = found[found.x > 1] if found.x.max() > 1 else found
    return found.groupby("seed").value.mean()


WHEN = (
    "Networks with random weights decide: the effect of a token is what the sources measure too, by erasing words. It counts if the rank "
    "correlation with the effect, mean of layers behind the first, is higher for {}, with the whole interval over seeds. It holds if so "
    "for each method compared, in part if for some of them; contradicted if for none, and for one decidedly lower. After the last layer it "
    "must not be decidedly lower either, or it holds in part; other layers are listed and decide nothing. "
    "It extends to networks made by hand if {}."
)
PAIRS = "more of the pairs of a needed and a needless token are right there too"
BOTH_DECIDED = " Networks made by hand had decided too; they are the bench's own, and are reported beside the verdict."
CLAIMS = (
    Claim(
        "rollout_beats_raw_attention",
        "Attention weights say less and less about the input behind the first layer; rollout and flow through all layers say more.",
        "Abnar and Zuidema: Quantifying attention flow in transformers, 2020",
        "https://arxiv.org/abs/2005.00928",
        ("second-hand",),
        SETTING + "The source looks at a trained network of 6 layers and correlates with blank-out and gradients.",
        WHEN.format("rollout, and for flow, than for raw attention", PAIRS),
        partial(better, first=("rollout", "flow"), second=("raw attention",)),
        shown=RANKS,
        thresholds=(BY_HAND, IN_RANKS),
        place=400,
        changed="12 seeds instead of 5." + BOTH_DECIDED,
    ),
    Claim(
        "alti_beats_gradients",
        "What each token's vector adds to the output of a block, by distances and rolled out over layers (ALTI), is more faithful "
        "than gradients.",
        "Ferrando, Gallego and Costa-jussa: Measuring the mixing of contextual information in the transformer, 2022",
        "https://arxiv.org/abs/2203.04212",
        ("second-hand",),
        SETTING
        + "The source looks at trained encoders of text, and judges by how answers change when words are erased.",
        WHEN.format("ALTI than for gradients", PAIRS),
        partial(better, first=("ALTI",), second=("Jacobian",)),
        shown=RANKS,
        thresholds=(BY_HAND, IN_RANKS),
        place=410,
        changed="12 seeds instead of 5." + BOTH_DECIDED,
    ),
    Claim(
        "value_zeroing_beats_weights",
        "How much a token's output turns when another's value is set to zero says better what it depends on than attention weights do.",
        "Mohebbi, Zuidema, Chrupala and Alishahi: Quantifying context mixing in transformers, 2023",
        "https://arxiv.org/abs/2301.12971",
        ("second-hand", "code"),
        SETTING + "The source looks at trained encoders and words that a grammatical form depends on.",
        WHEN.format("value zeroing, among the other tokens, than for raw attention and for rollout", PAIRS)
        + " Both are attention weights: those of the last layer, and those of all layers multiplied.",
        partial(better, first=("value zeroing",), second=("raw attention", "rollout"), among=AMONG),
        defects="scoring/value_zeroing.py, compute_joint_attention: matrices of layers are multiplied as if there were no skip connections "
        "(res=False), so what a token keeps of itself is lost from the second layer on; a row in which nothing turns the output is "
        "divided by zero.",
        shown=AMONG + RANKS,
        thresholds=(BY_HAND, IN_RANKS),
        place=420,
        changed="Compared among the other tokens alone, since it says nothing of what a token keeps of itself. The rule first compared "
        "it with rollout alone, and said contradicted; the statement is about attention weights, so those of the last layer are "
        "compared too, as they are for rollout." + BOTH_DECIDED,
    ),
    Claim(
        "decomposition_is_faithful",
        "Vectors that sum to a state, carried through all layers, tell what it depends on, where norms that are multiplied over "
        "layers do not.",
        "Modarressi, Fayyaz, Aghazadeh, Yaghoobzadeh and Pilehvar: DecompX, 2023",
        "https://arxiv.org/abs/2306.02873",
        ("second-hand",),
        SETTING + "The source looks at trained encoders, and judges by how answers change when words are erased.",
        WHEN.format(
            "decomposition than for norms",
            f"{PAIRS}, and all seven networks: it keeps weights and open units as they are",
        ),
        partial(better, first=("decomposed",), second=("norms",), exact=True),
        shown=RANKS,
        thresholds=(BY_HAND, IN_RANKS, ALL_RIGHT),
        place=430,
        changed="12 seeds instead of 5." + BOTH_DECIDED,
    ),
)
