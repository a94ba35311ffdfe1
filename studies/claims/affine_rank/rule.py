from rankfall import Decision, Extension, Read, Series, Threshold, evidence_rows, judge
from studies.claims.affine_rank.names import BESIDE, CHANGE, RESIDUAL, THROUGH

SAME = Threshold(0.0, "at", CHANGE, "every draw of lower than full rank beside the origin")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    lower = rows[rows.x < rows.x.max()]  # full rank cannot rise
    shares = {
        name: (evidence_rows(lower, CHANGE, name).value == SAME).groupby(evidence_rows(lower, CHANGE, name).x).mean()
        for name in (BESIDE, THROUGH)
    }
    beside = evidence_rows(lower, CHANGE, BESIDE).value
    ratio = evidence_rows(rows, RESIDUAL).value
    text = (
        f"In general position, at lower than full rank, a layer norm keeps the affine rank in {(beside == SAME).mean():.0%} of "
        f"draws; {say_change(beside)}. The "
        f"relative residual changes by a factor of {ratio.min():.2g} to {ratio.max():.2g}."
    )
    through = shares[THROUGH]
    return judge(
        text,
        float((beside == SAME).mean()),
        holds=bool((shares[BESIDE] == 1).all()),
        in_part=bool((shares[BESIDE] == 1).any()),
        contradicted=True,
        extends=[
            Extension(
                f"spaces through the origin, whose rank is a linear one (unchanged in {through.mean():.0%})",
                bool((through == 1).all()),
            )
        ],
    )


def say_change(change: Series) -> str:
    """Write by how much the rank changes: always by the same, or between two numbers."""
    if change.min() == change.max():
        return f"it always changes by {change.min():+.0f}"
    return f"its change lies between {change.min():+.0f} and {change.max():+.0f}"
