from rankfall import Decision, Extension, Read, Threshold, band_of, evidence_rows, is_on, judge
from studies.claims.last_tokens_converge.names import APART, READ
from studies.claims.rules import by_parts, true_of_all

ROUNDING = Threshold(-12.0, "below", APART, "softmax alone, after the last layer")  # of float64 after a few layers
NONE_READ = Threshold(2.0, "below", READ, "softmax alone, every number format")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    depth = float(evidence_rows(rows, APART).x.max())
    bare, behind = (band_of(rows, APART, f"softmax, {beginning}", depth) for beginning in ("no BOS", "BOS"))
    read_off = {
        beginning: {
            digits: band_of(rows, READ, f"softmax, {beginning}", digits)
            for digits in sorted(set(evidence_rows(rows, READ).x))
        }
        for beginning in ("no BOS", "BOS")
    }
    most = {beginning: max(largest.mean for largest in by_digits.values()) for beginning, by_digits in read_off.items()}
    sentence = (
        f"With softmax the states of different numbers n of equal tokens differ by at most 10^{bare.mean:.1f} of their size, and one layer "
        f"recovers n up to {most['no BOS']:.0f}."
    )
    largest_texts = ", ".join(
        f"{largest.mean:.0f} ({digits:.0f} binary digits)" for digits, largest in read_off["BOS"].items()
    )
    extends = [
        Extension(
            f"texts behind a BOS: 10^{behind.mean:.2f} apart, one layer recovers n up to {largest_texts}",
            is_on(behind, ROUNDING),
        )
    ]
    for name in ("l2", "exp"):
        free = band_of(rows, APART, f"{name}, no BOS", depth)
        extends.append(
            Extension(f"weights of {name}, whose sum is free: 10^{free.mean:.2f} apart", is_on(free, ROUNDING))
        )
    parts = [is_on(bare, ROUNDING), true_of_all(is_on(largest, NONE_READ) for largest in read_off["no BOS"].values())]
    return judge(sentence, bare, "longer texts", extends, **by_parts(parts))
