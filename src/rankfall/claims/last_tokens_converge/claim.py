"""Who says it, and what decides it."""

from __future__ import annotations

from rankfall.report.claim import Claim, Decision, Read, Threshold, band, band_of, compare, judge, of

DISTANCE = "log10 of the distance of last states over their size, by number of equal tokens"
EQUAL = "share of n with equal last states, by number of equal tokens"
APART = "log10 of the largest distance of last states over their size, by layers"
READ = "largest n up to which every n is read off, by digits"
POSITIONS = ("softmax, no positions", "softmax, ALiBi", "softmax, RoPE", "softmax, sinusoids")
OTHERS = ("l2, no positions", "exp, no positions")
# log10 of 2^-9: half the spacing of bfloat16 numbers near one.
HALF_SPACING = Threshold(-9 * 0.30103, "below", DISTANCE, "softmax with every position, at the most tokens")
ROUNDING = Threshold(-12.0, "below", APART, "after the last layer")  # of float64 after a few layers
PAPER = "Barbero, Banino, Kapturowski, Kumaran, Araujo, Vitvitskyi, Pascanu and Velickovic: Transformers need glasses!, 2024"


def converge(read: Read) -> Decision:
    rows = read("evidence")
    most = float(of(rows, DISTANCE).x.max())
    found = {line: band_of(rows, DISTANCE, line, most) for line in (*POSITIONS, *OTHERS)}
    told = {compare(found[line], HALF_SPACING) for line in POSITIONS}
    half = float(of(rows, EQUAL).x.max())
    said = f"Distance of the last states of {most:.0f} and one more equal tokens: " + "; ".join(
        f"{line} 10^{one.mean:.2f}, {band_of(rows, EQUAL, f'{line}, bfloat16', half).mean:.0%} equal in bfloat16"
        for line, one in found.items()
    )
    return judge(
        said + ".",
        found[POSITIONS[0]],
        "longer texts",
        holds=told == {"below"},
        in_part="below" in told,
        contradicted=told == {"above"},
    )


def count(read: Read) -> Decision:
    rows = read("evidence")
    depth = float(of(rows, APART).x.max())
    bare, behind = (band_of(rows, APART, f"softmax, {what}", depth) for what in ("no BOS", "BOS"))
    free = {name: band_of(rows, APART, f"{name}, no BOS", depth) for name in ("l2", "exp")}
    read_off = {digits: band(of(rows, READ, "softmax, BOS", digits).value) for digits in sorted(set(of(rows, READ).x))}
    said = (
        f"Without BOS, states of different numbers of equal tokens are within 10^{bare.mean:.1f} of each other with softmax; behind "
        "BOS they "
        f"are 10^{behind.mean:.2f} apart, and one layer tells n up to "
        + ", ".join(f"{found.mean:.0f} ({digits:.0f} binary digits)" for digits, found in read_off.items())
        + "; without BOS, "
        + " and ".join(f"{name} is 10^{one.mean:.2f} apart" for name, one in free.items())
        + "."
    )
    escapes = [compare(one, ROUNDING) for one in (behind, *free.values())]
    return judge(
        said,
        behind,
        "longer texts",
        contradicted=compare(bare, ROUNDING) == "above",
        in_part="above" in escapes,
        undecided="undecided" in escapes,
        holds=True,
    )


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
        "1024 times. The source looks at Gemma 7B, and its theorem at positions whose influence decays.",
        "It holds if for softmax without positions, with ALiBi, RoPE and sinusoids the last states of 1024 and 1025 equal tokens "
        "are nearer than "
        "half the spacing of bfloat16 (2^-9 of their size), with the whole interval; in part if for some of them.",
        converge,
        shown=DISTANCE,
        thresholds=(HALF_SPACING,),
        place=310,
    ),
    Claim(
        "counting_needs_positions",
        "Without positions a causal decoder cannot count: its states are the same for every number of equal tokens.",
        PAPER,
        "https://arxiv.org/abs/2406.04267",
        ("second-hand",),
        "The same decoders without positions read 1 to 1024 times one token, alone or behind another one (BOS); and one layer of attention "
        "alone, from whose state n is read off by the line that n = 1 and n = 2 give.",
        "It holds if states of all n are equal but for rounding (10^-12 of their size in float64), for softmax alone, behind BOS "
        "and for weights "
        "that do not sum to one; in part if for softmax alone only: a language model has a BOS.",
        count,
        shown=READ,
        thresholds=(ROUNDING,),
        place=320,
    ),
)
