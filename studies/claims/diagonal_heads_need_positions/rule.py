from rankfall import Decision, Extension, Read, Threshold, band_of, is_on, judge
from studies.claims.rope_and_distance.names import DIFFER, OWN, ROPE, TWICE
from studies.claims.rules import by_need

ALONE = 0.99  # of a token's attention on itself
SHARED = Threshold(ALONE, "below", OWN, "a token that occurs twice, without positions, at the largest scale")
DIAGONAL = Threshold(ALONE, "above", OWN, "a token that occurs twice, RoPE, at the largest scale")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    most = float(rows.x.max())
    twice, apart, turned = (band_of(rows, OWN, line, most) for line in (TWICE, DIFFER, ROPE))
    sentence = (
        f"With queries and keys that are the tokens themselves, a token that occurs twice gives itself {twice.mean:.4f} of its attention "
        f"without positions, and {turned.mean:.4f} with RoPE."
    )
    extends = [
        Extension(
            f"texts whose tokens all differ: there each gives itself at least {apart.mean:.4f}", is_on(apart, SHARED)
        )
    ]
    conditions = by_need(is_on(twice, SHARED), is_on(turned, DIAGONAL))
    return judge(sentence, twice, "larger score scales", extends, **conditions)
