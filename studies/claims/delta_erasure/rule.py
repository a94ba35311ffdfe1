from rankfall import Band, Decision, Read, Threshold, band, evidence_rows, is_on, judge
from studies.claims.delta_erasure.names import ADDED, ERASED, KINDS, RESIDUAL

LARGER = Threshold(0.0, "above", "decades of relative residual with erasure less those with adding")
TENTH = Threshold(-1.0, "above", RESIDUAL, f"{ERASED}, after the last layer")
LOSES = Threshold(0.0, "below", "decades gained over the last doubling of layers", "with adding, and not with erasure")
LESS = Threshold(0.0, "above", "decades gained over the last doubling with erasure less those with adding")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    half = max(x for x in rows.x if x <= last / 2)
    # A residual below the floor counts as the floor: 10^-13.
    logs, middle = (
        {kind: evidence_rows(rows, RESIDUAL, kind, x).value.fillna(-13.0).to_numpy() for kind in KINDS}
        for x in (last, half)
    )
    late = {kind: band(logs[kind] - middle[kind]) for kind in KINDS}
    gain = band(a - b for a, b in zip(logs[ERASED], logs[ADDED], strict=True))
    bands = {kind: band(values) for kind, values in logs.items()}
    text = (
        f"Relative residual after {last:.0f} layers: "
        + ", ".join(f"10^{residual.mean:.2f} {kind}" for kind, residual in bands.items())
        + "; over the last doubling it changes by "
        + ", ".join(f"{change.mean:+.2f} {kind}" for kind, change in late.items())
        + " decades."
    )
    larger = is_on(gain, LARGER)
    less = band((logs[ERASED] - middle[ERASED]) - (logs[ADDED] - middle[ADDED]))
    adding = False if late[ADDED].low >= LOSES else is_on(late[ADDED], LOSES)
    parts = {adding, stays(late[ERASED], less), is_on(bands[ERASED], TENTH)}
    return judge(
        text,
        gain,
        "more layers or seeds",
        contradicted=larger is False,
        holds=larger is True and parts == {True},
        in_part=larger is True and False in parts,
    )


def stays(late: Band, less: Band) -> bool | None:
    """Return whether erasure stops losing rank: it does if it gains, or if it may lose but loses less than adding does."""
    loses = is_on(late, LOSES)
    return (True if is_on(less, LESS) else None) if loses is None else not loses
