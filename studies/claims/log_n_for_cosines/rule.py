from rankfall import Decision, Read, band_of, evidence_rows, judge, within
from studies.claims.rules import by_parts, lies_between
from studies.claims.score_scales.limits import cosine_after, critical_of_cosines
from studies.claims.score_scales.names import COSINE, CRITICAL, OF_CRITICAL
from studies.claims.score_scales.reading import CLOSE, measured_lines, parse_rho

LOW, HIGH = within(1, 0.1, CRITICAL, "at the most tokens")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(evidence_rows(rows, COSINE).x.max())
    worst = 0.0
    parts: dict[str, bool | None] = {}
    for name in measured_lines(rows, COSINE):
        rho = parse_rho(name)
        limit = cosine_after(rho, OF_CRITICAL[name.split(", ")[1]] * critical_of_cosines(rho))
        cosine = band_of(rows, COSINE, name, last)
        worst = max(worst, abs(cosine.mean - limit))
        parts[f"{name}: {cosine} for {limit:.3g}"] = lies_between(cosine, limit - CLOSE, limit + CLOSE)
    critical = {parse_rho(name): band_of(rows, CRITICAL, name, last) for name in measured_lines(rows, CRITICAL)}
    parts |= {f"the critical scale at rho {rho:g}": lies_between(scale, LOW, HIGH) for rho, scale in critical.items()}
    wrong, unclear = ([name for name, answer in parts.items() if answer is outcome] for outcome in (False, None))
    middle = critical[sorted(critical)[len(critical) // 2]]
    text = (
        f"At {last:,.0f} tokens half of the weight is on the token itself from "
        + ", ".join(f"{scale.mean:.3f} / (1 - rho) at rho {rho:g}" for rho, scale in sorted(critical.items()))
        + f"; cosines after the layer differ from 1, 4 rho / (1 + 3 rho) and rho by at most {worst:.2g}"
        + (f" (not within bounds: {'; '.join(wrong)})" if wrong else "")
        + "."
    )
    return judge(text, middle, "more seeds: " + "; ".join(unclear), **by_parts(parts.values()))
