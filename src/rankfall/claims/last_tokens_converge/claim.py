"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

import numpy as np

from rankfall.claims.answers import by_parts, true_of_all
from rankfall.claims.trends import slopes
from rankfall.report.claim import (
    Claim,
    Decision,
    Extension,
    Read,
    Threshold,
    band,
    band_of,
    evidence_rows,
    is_on,
    judge,
)

DISTANCE = "log10 of the distance of last states over their size, by number of equal tokens"
EQUAL = "share of n with equal last states, by number of equal tokens"
APART = "log10 of the largest distance of last states over their size, by layers"
READ = "largest n up to which every n is read off, by digits"
POSITIONS = ("softmax, no positions", "softmax, ALiBi", "softmax, RoPE")
OTHERS = ("softmax, sinusoids", "l2, no positions", "exp, no positions")
FALLS = Threshold(0.0, "below", "power of the number of equal tokens in the distance", "the last three octaves")
MOSTLY = Threshold(0.5, "above", EQUAL, "bfloat16, the last octave")
ROUNDING = Threshold(-12.0, "below", APART, "softmax alone, after the last layer")  # of float64 after a few layers
NONE_READ = Threshold(2.0, "below", READ, "softmax alone, every number format")
PAPER = "Barbero, Banino, Kapturowski, Kumaran, Araujo, Vitvitskyi, Pascanu and Velickovic: Transformers need glasses!, 2024"


def converge(read: Read) -> Decision:
    rows = read("evidence")
    distances = evidence_rows(rows, DISTANCE)
    most, half = float(distances.x.max()), float(evidence_rows(rows, EQUAL).x.max())
    late = distances[distances.x >= most / 8].assign(x=lambda table: np.log10(table.x))
    powers = {line: band(slopes(late[late.line == line])) for line in (*POSITIONS, *OTHERS)}
    equal = {line: band_of(rows, EQUAL, f"{line}, bfloat16", half) for line in powers}
    texts = {
        line: f"{line} 10^{band_of(rows, DISTANCE, line, most).mean:.2f}, going like n^{powers[line].mean:.2f}, "
        f"{equal[line].mean:.0%} equal in bfloat16"
        for line in powers
    }
    said = f"Distance of the last states of {most:.0f} and one more equal tokens, and how many of n from {half:.0f} on are equal: "
    falls = {line: is_on(power, FALLS) for line, power in powers.items()}
    same = {line: is_on(share, MOSTLY) for line, share in equal.items()}
    parts = [answer[line] for answer in (falls, same) for line in POSITIONS]
    extends = [Extension(texts[line], true_of_all((falls[line], same[line]))) for line in OTHERS]
    said += "; ".join(texts[line] for line in POSITIONS) + "."
    return judge(said, equal[POSITIONS[0]], "longer texts", extends, **by_parts(parts))


def count(read: Read) -> Decision:
    rows = read("evidence")
    depth = float(evidence_rows(rows, APART).x.max())
    bare, behind = (band_of(rows, APART, f"softmax, {what}", depth) for what in ("no BOS", "BOS"))
    read_off = {
        what: {
            digits: band_of(rows, READ, f"softmax, {what}", digits)
            for digits in sorted(set(evidence_rows(rows, READ).x))
        }
        for what in ("no BOS", "BOS")
    }
    most = {what: max(one.mean for one in by_digits.values()) for what, by_digits in read_off.items()}
    said = (
        f"States of different numbers of equal tokens are within 10^{bare.mean:.1f} of each other with softmax, and the largest n "
        f"that one layer tells is {most['no BOS']:.0f}."
    )
    told = ", ".join(f"{one.mean:.0f} ({digits:.0f} binary digits)" for digits, one in read_off["BOS"].items())
    extends = [
        Extension(
            f"texts behind a BOS: 10^{behind.mean:.2f} apart, one layer tells n up to {told}", is_on(behind, ROUNDING)
        )
    ]
    for name in ("l2", "exp"):
        free = band_of(rows, APART, f"{name}, no BOS", depth)
        extends.append(
            Extension(f"weights of {name}, whose sum is free: 10^{free.mean:.2f} apart", is_on(free, ROUNDING))
        )
    parts = [is_on(bare, ROUNDING), true_of_all(is_on(one, NONE_READ) for one in read_off["no BOS"].values())]
    return judge(said, bare, "longer texts", extends, **by_parts(parts))


CLAIMS = (
    Claim(
        "last_tokens_converge",
        "The last states of a decoder for a token repeated n and n + 1 times converge as n grows, until a number format cannot tell "
        "them apart.",
        PAPER,
        "https://arxiv.org/abs/2406.04267",
        ("second-hand",),
        "Decoders with random weights N(0, 1 / width): 4 layers of 4 heads, width 32, pre-norm with MLP; 8 random tokens, then one "
        "token 1 to "
        "1024 times. The source looks at Gemma 7B in bfloat16, with RoPE, and its theorem at positions whose influence decays.",
        "Two parts, for softmax without positions, with ALiBi and with RoPE each: the distance of the last states falls with n over the "
        "last three octaves (power below 0), and of n from 512 to 1023 more than half have last states that are equal to those of n + 1 "
        "in bfloat16, to the last digit; whole intervals. It holds if all do, in part if some do, and is contradicted if none does. "
        "Sinusoids, and weights that do not sum to one, are ours and decide nothing.",
        converge,
        shown=DISTANCE,
        thresholds=(FALLS, MOSTLY),
        place=310,
        changed="A distance in float64 below half the spacing of bfloat16 had counted as equal in bfloat16, where few or no states are "
        "equal: equal states are counted now. Sinusoids had decided too.",
    ),
    Claim(
        "counting_needs_positions",
        "Without positions a causal decoder cannot count: its states are the same for every number of equal tokens.",
        PAPER,
        "https://arxiv.org/abs/2406.04267",
        ("second-hand",),
        "The same decoders without positions read 1 to 1024 times one token, alone or behind another one (BOS); and one layer of attention "
        "alone, from whose state n is read off by the line that n = 1 and n = 2 give.",
        "Two parts, for softmax alone: states of all n are equal but for rounding (10^-12 of their size in float64), and one layer "
        "tells no n from 1, in any number format. It holds if both are so, in part if one is. A BOS, and weights that do not sum to "
        "one, are ours and decide nothing.",
        count,
        shown=READ,
        thresholds=(ROUNDING, NONE_READ),
        place=320,
        changed="A BOS, and weights that do not sum to one, had decided too, so that it held only in part; the statement is about "
        "equal tokens alone.",
    ),
)
