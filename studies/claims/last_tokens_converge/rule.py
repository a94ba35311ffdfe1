import numpy as np

from rankfall import Decision, Extension, Read, Threshold, band, band_of, evidence_rows, is_on, judge
from studies.claims.last_tokens_converge.names import DISTANCE, EQUAL
from studies.claims.rules import by_parts, slopes, true_of_all

POSITIONS = ("softmax, no positions", "softmax, ALiBi", "softmax, RoPE")
OTHERS = ("softmax, sinusoids", "l2, no positions", "exp, no positions")
FALLS = Threshold(0.0, "below", "power of the number of equal tokens in the distance", "the last three octaves")
MOSTLY = Threshold(0.5, "above", EQUAL, "bfloat16, the last octave")


def decide(read: Read) -> Decision:
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
    sentence = (
        f"Distance of the last states of n and n + 1 equal tokens at n = {most:.0f}, and the share of n from {half:.0f} on with equal "
        "states: "
    )
    falls = {line: is_on(power, FALLS) for line, power in powers.items()}
    same = {line: is_on(share, MOSTLY) for line, share in equal.items()}
    parts = [answer[line] for answer in (falls, same) for line in POSITIONS]
    extends = [Extension(texts[line], true_of_all((falls[line], same[line]))) for line in OTHERS]
    sentence += "; ".join(texts[line] for line in POSITIONS) + "."
    return judge(sentence, equal[POSITIONS[0]], "longer texts", extends, **by_parts(parts))
