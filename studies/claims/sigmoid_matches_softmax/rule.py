from rankfall import Decision, Extension, Read, Threshold, band_of, is_on, judge
from studies.claims.length_and_scale.names import OFF, SUM
from studies.claims.rules import by_need, true_of_all

SIZES = ("scores of size 0.1", "scores of size 1", "scores of size 3")
CLOSE = Threshold(0.2, "below", OFF, f"{SIZES[0]}, with the shift, at every number")
APART = Threshold(CLOSE, "above", OFF, f"{SIZES[0]}, without the shift, at the most tokens")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    numbers = sorted(set(rows.x))
    most = numbers[-1]
    distances = {(size, x): band_of(rows, OFF, f"{size}, shift -log n", x) for size in SIZES for x in numbers}
    bare = band_of(rows, OFF, f"{SIZES[0]}, no shift", most)
    sums = {size: band_of(rows, SUM, f"{size}, shift -log n", most).mean for size in SIZES}
    free = band_of(rows, SUM, f"{SIZES[0]}, no shift", most).mean
    texts = {size: f"{size}: {distances[size, most].mean:.2f} (rows sum to {sums[size]:.2f})" for size in SIZES}
    sentence = f"Distance from softmax at {most:.0f} tokens, {texts[SIZES[0]]}; without the shift {bare.mean:.0f} ({free:.0f})."
    close = {size: true_of_all(is_on(distances[size, x], CLOSE) for x in numbers) for size in SIZES}
    extends = [Extension(texts[size], close[size]) for size in SIZES[1:]]
    conditions = by_need(close[SIZES[0]], is_on(bare, APART))
    return judge(sentence, distances[SIZES[0], most], "more draws", extends, **conditions)
