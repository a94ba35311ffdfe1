import math

from rankfall import Decision, Extension, Read, Threshold, band_of, evidence_rows, is_on, judge
from studies.claims.loops_need_recall.names import ALONE, BOTH, CHANGE, FELT, RECALL, UNNORMED
from studies.claims.rules import by_parts, true_of_all, true_of_any

NEVER = Threshold(0.1, "below", BOTH, "without recall, at every scale")
OFTEN = Threshold(0.9, "above", BOTH, "with recall, at one scale")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    scales = sorted(evidence_rows(rows, BOTH).x.unique())
    shares = {line: [band_of(rows, BOTH, line, x) for x in scales] for line in (ALONE, RECALL, UNNORMED)}
    changes = {
        line: [evidence_rows(rows, CHANGE, line, x).value.fillna(-math.inf) for x in scales] for line in (ALONE, RECALL)
    }
    fixed = {line: [f"{(change < -6).mean():.0%}" for change in values] for line, values in changes.items()}
    felt = {line: [f"10^{evidence_rows(rows, FELT, line, x).value.mean():.1f}" for x in scales] for line in shares}
    text = "; ".join(
        f"{line}: {', '.join(f'{share.mean:.0%}' for share in shares[line])} fixed and dependent "
        f"(fixed {', '.join(fixed[line])}; dependence {', '.join(felt[line])})"
        for line in (ALONE, RECALL)
    )
    sentence = f"At scales {', '.join(f'{x:g}' for x in scales)} of the weights, {text}."
    never = true_of_all(is_on(share, NEVER) for share in shares[ALONE])
    often = true_of_any(is_on(share, OFTEN) for share in shares[RECALL])
    before = true_of_any(is_on(share, OFTEN) for share in shares[UNNORMED])
    best = max(share.mean for share in shares[UNNORMED])
    return judge(
        sentence,
        max(shares[RECALL], key=lambda share: share.mean),
        "more networks or loops",
        [Extension(f"recall with norms before ({best:.0%} at the best scale)", before)],
        **by_parts((never, often)),
    )
