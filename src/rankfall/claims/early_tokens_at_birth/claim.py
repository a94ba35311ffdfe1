"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankfall.claims.answers import true_of_all
from rankfall.report.claim import (
    Band,
    Claim,
    Decision,
    Extension,
    Read,
    Threshold,
    band_of,
    change_of,
    compare,
    evidence_rows,
    is_on,
    judge,
)

if TYPE_CHECKING:
    from pandas import DataFrame

BIAS = "log of the first item's influence over the middle one's, by layers"
FIRST = "first token's share of influence, by layers"
NETWORKS = ("no positions", "ALiBi", "RoPE")
DECODER = "skips and norms"
SHALLOW, DEEP = 2.0, 6.0  # layers, as in the source's table
GROWN = Threshold(
    0.0,
    "above",
    f"change of the log of the first item's influence over the middle one's from {SHALLOW:.0f} to {DEEP:.0f} layers",
    "every kind of position, without skips",
)
LARGE = Threshold(0.5, "above", FIRST, f"every kind of position, {DECODER}, after the most layers")
RISES = Threshold(
    0.0, "above", "change of the first token's share over the last doubling of layers", "where it is not yet half"
)
PAPER = "Wu, Wang, Jegelka and Jadbabaie: On the emergence of position bias in transformers, 2025"
LINK = "https://arxiv.org/abs/2502.01951"
DEFECTS = (
    "Of xinyiwu98/position-bias-in-attention: train.py, lines 99 and 172: --not_res stores false over a default of true, and is "
    "then negated, so that it "
    "turns residual connections on, and without it they are off. data.py, lines 37, 43, 72, 81 and 153: numbers are drawn with the "
    "deviation 1/D, where "
    "vectors of length one need 1/sqrt(D): tokens are sqrt(D) = 8 times shorter. data.py, lines 48 and 158: labels come from "
    "Python's random, which is "
    "never seeded, beside seeded numpy and torch; train.py has no seed for weights at all, and its table no error bars. data.py, "
    "lines 172, 205, 238 and on: "
    "the item that is made equal to the right one keeps its own label, which is the right one too where both were of one class."
)
SETTING = (
    "Untrained: attention of one head with random weights and nothing else, 17 tokens of width 32 as in the source's task (eight "
    "items, their labels, a "
    "query), influence on the last token by derivatives. The source trains its networks, where a gap of accuracies shows the bias. "
)


def amplifies(read: Read) -> Decision:
    rows = read("evidence")
    changes = {line: change_of(rows, BIAS, f"{line}, no skips", SHALLOW, DEEP) for line in NETWORKS}
    said = f"Log of first over middle item at {SHALLOW:.0f} and {DEEP:.0f} layers without skips: " + "; ".join(
        f"{line} {_at(rows, f'{line}, no skips', SHALLOW)} and {_at(rows, f'{line}, no skips', DEEP)}"
        for line in NETWORKS
    )
    with_skips = ", ".join(f"{line} {_at(rows, f'{line}, skips', DEEP)}" for line in NETWORKS)
    answers = {compare(one, GROWN) for one in changes.values()}
    said += f". With skips at {DEEP:.0f}: {with_skips}."
    return _decide(answers, said, changes[NETWORKS[0]], wants="more seeds")


def _at(rows: DataFrame, line: str, x: float) -> str:
    return f"{band_of(rows, BIAS, line, x).mean:.2f}"


def _decide(answers: set[str], said: str, number: Band, wants: str) -> Decision:
    somewhere = "above" in answers
    return judge(said, number, wants, holds=answers == {"above"}, in_part=somewhere, contradicted=answers == {"below"})


def only(read: Read) -> Decision:
    rows = evidence_rows(read("evidence"), FIRST)
    deep = sorted(set(evidence_rows(rows, FIRST, f"{NETWORKS[0]}, {DECODER}").x))
    shares = {line: band_of(rows, FIRST, f"{line}, {DECODER}", deep[-1]) for line in NETWORKS}
    changes = {line: change_of(rows, FIRST, f"{line}, {DECODER}", *deep[-2:]) for line in NETWORKS}
    large = {line: is_on(shares[line], LARGE) for line in NETWORKS}
    open_ = [
        large[line] is None or (large[line] is False and compare(changes[line], RISES) != "below") for line in NETWORKS
    ]
    said = (
        f"First token's share of influence on the last of 17 after {deep[-1]:.0f} layers with skips and norms, and what it gained since "
        f"{deep[-2]:.0f}: "
        + ", ".join(f"{line} {shares[line].mean:.2f}, {changes[line].mean:+.2f}" for line in NETWORKS)
    )
    return judge(
        f"{said}.",
        shares[NETWORKS[0]],
        "more layers: the share is below one half and still rises",
        holds=all(large.values()),
        undecided=any(open_),
        in_part=any(large.values()),
        contradicted=True,
        extends=[_bare(rows, kind) for kind in ("no skips", "skips")],
    )


def _bare(rows: DataFrame, kind: str) -> Extension:
    """Return the extension about networks without norms."""
    last = float(evidence_rows(rows, FIRST, f"{NETWORKS[0]}, {kind}").x.max())
    shares = {line: band_of(rows, FIRST, f"{line}, {kind}", last) for line in NETWORKS}
    sides = [is_on(one, LARGE) for one in shares.values()]
    listed = ", ".join(f"{line} {one.mean:.2f}" for line, one in shares.items())
    return Extension(
        f"{last:.0f} layers with {kind} and no norms ({listed})",
        true_of_all(sides),
    )


CLAIMS = (
    Claim(
        "depth_amplifies_early_bias",
        "Under a causal mask the bias to early tokens grows with depth, with relative positions too.",
        PAPER,
        LINK,
        ("second-hand", "code"),
        SETTING,
        "It holds if without skips (the source's setting for it) the log of the first item's influence over the middle one's is "
        "larger at 6 layers than at "
        "2, without positions, with ALiBi of its decay and with RoPE, each with the whole interval over seeds; in part if for some.",
        amplifies,
        defects=DEFECTS,
        shown=BIAS,
        thresholds=(GROWN,),
        place=350,
    ),
    Claim(
        "only_the_first_token_is_left",
        "Early tokens have more paths to the last one, and in the limit of depth only the first one counts.",
        "Barbero, Banino, Kapturowski, Kumaran, Araujo, Vitvitskyi, Pascanu and Velickovic: Transformers need glasses!, 2024",
        "https://arxiv.org/abs/2406.04267",
        ("second-hand",),
        SETTING
        + "The source's decoders have skips and norms: the same network with a layer norm before each branch, up to 128 layers.",
        "Networks with skips and norms decide. It counts if after 128 layers the first token has more than half of the influence on the "
        "last of 17 (equal shares are 0.06). It holds if so for all three kinds of positions, in part if for some; it is open while a "
        "share below one half still rises over the last doubling of layers.",
        only,
        shown=FIRST,
        thresholds=(LARGE, RISES),
        place=370,
        changed="Networks without norms had decided, with skips and without, at 32 layers; the source's decoders have both, and its "
        "statement is about the limit of depth.",
    ),
)
