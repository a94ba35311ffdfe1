from rankfall import (
    DataFrame,
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
from studies.claims.early_tokens_at_birth.names import DECODER, FIRST, NETWORKS
from studies.claims.rules import true_of_all

LARGE = Threshold(0.5, "above", FIRST, f"every kind of position, {DECODER}, after the most layers")
RISES = Threshold(
    0.0, "above", "change of the first token's share over the last doubling of layers", "where it is not yet half"
)


def decide(read: Read) -> Decision:
    rows = evidence_rows(read("evidence"), FIRST)
    deep = sorted(set(evidence_rows(rows, FIRST, f"{NETWORKS[0]}, {DECODER}").x))
    shares = {line: band_of(rows, FIRST, f"{line}, {DECODER}", deep[-1]) for line in NETWORKS}
    changes = {line: change_of(rows, FIRST, f"{line}, {DECODER}", *deep[-2:]) for line in NETWORKS}
    large = {line: is_on(shares[line], LARGE) for line in NETWORKS}
    open_ = [
        large[line] is None or (large[line] is False and compare(changes[line], RISES) != "below") for line in NETWORKS
    ]
    sentence = (
        f"First token's share of influence on the last of 17 after {deep[-1]:.0f} layers with skips and norms, and its gain since "
        f"{deep[-2]:.0f} layers: "
        + ", ".join(f"{line} {shares[line].mean:.2f}, {changes[line].mean:+.2f}" for line in NETWORKS)
    )
    return judge(
        f"{sentence}.",
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
    sides = [is_on(share, LARGE) for share in shares.values()]
    listed = ", ".join(f"{line} {share.mean:.2f}" for line, share in shares.items())
    return Extension(
        f"{last:.0f} layers with {kind} and no norms ({listed})",
        true_of_all(sides),
    )
