from rankfall import Decision, Read, Threshold, band_of, is_on, judge
from studies.claims.householder_paths_track_states.names import NONE, PATH, RIGHT, ROPE
from studies.claims.rules import by_need, difference

MORE = Threshold(0.0, "above", "right answers with PaTH less those with RoPE, at every length")
NEAR = Threshold(0.95, "above", RIGHT, f"{PATH}, at the trained length")
FAR = Threshold(0.9, "above", RIGHT, f"{PATH}, at four times the trained length")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    lengths = sorted(rows.x.unique())
    bands = {line: {x: band_of(rows, RIGHT, line, x) for x in lengths} for line in (PATH, ROPE, NONE)}
    more = [difference(rows, RIGHT, PATH, ROPE, x) for x in lengths]
    sentence = (
        f"Right answers on parity at {', '.join(f'{x:.0f}' for x in lengths)} tokens, of which {lengths[0]:.0f} were trained: "
        + "; ".join(
            f"{line} {', '.join(f'{share.mean:.0%}' for share in by_length.values())}"
            for line, by_length in bands.items()
        )
        + " (chance 50%)."
    )
    answers = [is_on(gain, MORE) for gain in more]
    near, far = is_on(bands[PATH][lengths[0]], NEAR), is_on(bands[PATH][lengths[-1]], FAR)
    everywhere = None if None in (near, far, *answers) else all((near, far, *answers))
    return judge(sentence, more[0], "more seeds or steps", **by_need(answers[0], everywhere))
