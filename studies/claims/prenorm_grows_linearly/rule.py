from rankfall import Band, Decision, Extension, Read, Threshold, is_on, judge, within
from studies.claims.norm_growth.names import STARTS
from studies.claims.norm_growth.reading import MORE, NEAR, others, power
from studies.claims.rules import lies_between

SIZE_FROM, SIZE_TO = within(1, NEAR, "power of the layer in the size of what layers have added", "both starts")
AT_MOST = Threshold(
    1 + NEAR, "below", "power of the layer in the size of what layers have added", "both starts, to hold in part"
)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    powers = {}
    for line in (*STARTS, *others(rows)):
        square = power(rows, line)
        powers[line] = Band(square.mean / 2, square.low / 2, square.high / 2, square.seeds)
    answers = {line: lies_between(p, SIZE_FROM, SIZE_TO) for line, p in powers.items()}
    sentence = (
        "At birth the size of what layers have added (root of the mean square) grows like "
        + " and ".join(f"l^{powers[line].mean:.2f} for {line}" for line in STARTS)
        + "; independent branches have l^0.50. O(L) allows any growth up to linear."
    )
    bounded = {is_on(powers[line], AT_MOST) for line in STARTS}
    extends = [Extension(f"{line}: l^{powers[line].mean:.2f}", answers[line]) for line in others(rows)]
    return judge(
        sentence,
        powers[STARTS[0]],
        MORE,
        extends,
        holds={answers[line] for line in STARTS} == {True},
        in_part=bounded == {True} and False in {answers[line] for line in STARTS},
        contradicted=False in bounded,
    )
