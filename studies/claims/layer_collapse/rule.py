from rankfall import Decision, Extension, Read, Threshold, band, evidence_rows, is_on, judge
from studies.claims.layer_collapse.names import ERROR, NONE, NORMED, ONE
from studies.claims.rules import slopes

SMALL = 0.05  # the largest eta in the fit of a power
# 1 itself is reached up to the fit: the bound holds from .95 on.
AT_LEAST = Threshold(0.95, "above", "power of eta in the distance", "one layer")
FALLS = Threshold(0.0, "above", "power of eta in the distance", "one layer, to hold in part")


def decide(read: Read) -> Decision:
    rows = evidence_rows(read("evidence"), ERROR)
    near = rows[rows.x < SMALL]
    powers = {name: band(slopes(near[near.line == name], log=True)) for name in (ONE, NORMED, NONE)}
    text = "As eta goes to 0 the distance goes like " + ", ".join(
        f"eta^{powers[name].mean:.2f} ({name})" for name in (ONE, NONE)
    )
    extends = [Extension(f"networks with norms before: eta^{powers[NORMED].mean:.2f}", is_on(powers[NORMED], AT_LEAST))]
    enough, falls = is_on(powers[ONE], AT_LEAST), is_on(powers[ONE], FALLS)
    return judge(
        text
        + "; the bound has eta^1."
        + " No layer at all is within it too." * (is_on(powers[NONE], AT_LEAST) is True),
        powers[ONE],
        "smaller eta",
        extends,
        undecided=None in (enough, falls),
        holds=enough is True,
        in_part=falls is True,
        contradicted=True,
    )
