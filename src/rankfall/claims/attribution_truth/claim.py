"""Who says it, and what decides it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rankfall.report.claim import Claim, Decision, Read, Threshold, band, compare, judge, of

if TYPE_CHECKING:
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
BY_HAND = Threshold(0.0, "above", "chance to put a needed token above a needless one, less that of the other method")
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
    """Whether methods are right more often than others, by hand and in ranks; `exact`: to hold the first must be right everywhere too."""
    rows = read("evidence")
    pairs = [(method, other) for method in first for other in second]
    hands, ranks = (
        [band(by_seed(rows, among + what, method) - by_seed(rows, among + what, other)) for method, other in pairs]
        for what in (RIGHT, RANKS)
    )
    answers = [compare(hand, BY_HAND) for hand in hands] + [compare(rank, IN_RANKS) for rank in ranks]
    said = "; ".join(f"{method} {say_ranks(rows, method, among)}" for method in (*first, *second))
    wrong = exact and of(rows, RIGHT, first[0]).value.min() < ALL_RIGHT - 1e-9
    return judge(
        f"Right by hand, rank correlation at random: {said}.",
        hands[0],
        "more networks",
        holds=set(answers) == {"above"} and not wrong,
        in_part="above" in answers,
        contradicted="below" in answers,
    )


def say_ranks(rows: DataFrame, method: str, among: str = "") -> str:
    right, ranks = of(rows, among + RIGHT, method), of(rows, among + RANKS, method)
    wrong = [NAMES[int(x)] for x, part in right.groupby("x") if part.value.mean() < ALL_RIGHT - 1e-9]
    first, last = (ranks[ranks.x == x].value.mean() for x in (ranks.x.min(), ranks.x.max()))
    failed = f" (not in: {', '.join(wrong)})" if wrong else ""
    return f"{right.value.mean():.2f}{failed}, {first:.2f} after the first layer and {last:.2f} after the last"


def by_seed(rows: DataFrame, quantity: str, method: str) -> DataFrame:
    """Means over networks, or over layers behind the first."""
    found = of(rows, quantity, method)
    if quantity.endswith(RANKS):
        found = found[found.x > 1] if found.x.max() > 1 else found
    return found.groupby("seed").value.mean()


WHEN = (
    "It counts by hand if {} right in more of the pairs of a needed and a needless token, and at random if its rank correlation "
    "with the effect, mean of "
    "layers behind the first, is higher, each with the whole interval over seeds. It holds if both count, in part if one does; "
    "contradicted if none does "
    "and one is decidedly the other way."
)
CLAIMS = (
    Claim(
        "rollout_beats_raw_attention",
        "Attention weights say less and less about the input behind the first layer; rollout and flow through all layers say more.",
        "Abnar and Zuidema: Quantifying attention flow in transformers, 2020",
        "https://arxiv.org/abs/2005.00928",
        ("second-hand",),
        SETTING + "The source looks at a trained network of 6 layers and correlates with blank-out and gradients.",
        WHEN.format("rollout, and flow, are each"),
        partial(better, first=("rollout", "flow"), second=("raw attention",)),
        shown=RANKS,
        thresholds=(BY_HAND, IN_RANKS),
        place=400,
        changed="12 seeds instead of 5.",
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
        WHEN.format("ALTI is"),
        partial(better, first=("ALTI",), second=("Jacobian",)),
        shown=RIGHT,
        thresholds=(BY_HAND, IN_RANKS),
        place=410,
        changed="12 seeds instead of 5.",
    ),
    Claim(
        "value_zeroing_beats_weights",
        "How much a token's output turns when another's value is set to zero says better what it depends on than attention weights do.",
        "Mohebbi, Zuidema, Chrupala and Alishahi: Quantifying context mixing in transformers, 2023",
        "https://arxiv.org/abs/2301.12971",
        ("second-hand", "code"),
        SETTING + "The source looks at trained encoders and words that a grammatical form depends on.",
        WHEN.format("value zeroing is, among the other tokens and compared with raw attention and with rollout each,")
        + " Both are attention weights: those of the last layer, and those of all layers multiplied.",
        partial(better, first=("value zeroing",), second=("raw attention", "rollout"), among=AMONG),
        defects="scoring/value_zeroing.py, compute_joint_attention: matrices of layers are multiplied as if there were no skip connections "
        "(res=False), so what a token keeps of itself is lost from the second layer on; a row in which nothing turns the output is "
        "divided by zero.",
        shown=AMONG + RIGHT,
        thresholds=(BY_HAND, IN_RANKS),
        place=420,
        changed="Compared among the other tokens alone, since it says nothing of what a token keeps of itself. The rule first compared "
        "it with rollout alone, and said contradicted; the statement is about attention weights, so those of the last layer are "
        "compared too, as they are for rollout.",
    ),
    Claim(
        "decomposition_is_faithful",
        "Vectors that sum to a state, carried through all layers, tell what it depends on, where norms that are multiplied over "
        "layers do not.",
        "Modarressi, Fayyaz, Aghazadeh, Yaghoobzadeh and Pilehvar: DecompX, 2023",
        "https://arxiv.org/abs/2306.02873",
        ("second-hand",),
        SETTING + "The source looks at trained encoders, and judges by how answers change when words are erased.",
        WHEN.format("decomposition is, compared with norms,")
        + " To hold it must be right in all seven networks too: it keeps weights and open units as they are.",
        partial(better, first=("decomposed",), second=("norms",), exact=True),
        shown=RIGHT,
        thresholds=(BY_HAND, IN_RANKS, ALL_RIGHT),
        place=430,
        changed="12 seeds instead of 5.",
    ),
)
