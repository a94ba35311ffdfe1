from rankfall import Decision, Read, judge, within
from studies.claims.norm_growth.reading import MORE, NEAR, others, power
from studies.claims.rules import by_parts, lies_between

SQUARE_FROM, SQUARE_TO = within(
    1, NEAR, "power of the layer in the mean square of what layers have added", "both starts"
)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    powers = {line: power(rows, line) for line in others(rows)}
    sentence = (
        "At birth, with norms around the branch, the mean square of what layers have added grows like "
        + ", ".join(f"l^{p.mean:.2f} for {line}" for line, p in powers.items())
        + "."
    )
    parts = [lies_between(p, SQUARE_FROM, SQUARE_TO) for p in powers.values()]
    return judge(sentence, next(iter(powers.values())), MORE, **by_parts(parts))
