from itertools import pairwise

from rankfall import Decision, Read, Threshold, change_of, compare, judge
from studies.claims.trained_bias.reading import FALLS, GAP, LEARNED, learned_depths, say_depths

GROWN = Threshold(0.0, "above", "change of the gap from the shallowest network to the deepest")
THRESHOLDS = (LEARNED, GROWN, FALLS)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    layers = learned_depths(rows, "no skips")
    sentence = say_depths(rows, "no skips")
    if len(layers) < 2:
        return judge(sentence, None, "deeper networks without skips that learn the task")
    change = change_of(rows, GAP, "no skips", layers[0], layers[-1])
    answer = compare(change, GROWN)
    turn = "below" in [compare(change_of(rows, GAP, "no skips", a, b), FALLS) for a, b in pairwise(layers)]
    unclear, falls = answer == "undecided", answer == "below"
    return judge(sentence, change, "more seeds", undecided=unclear, contradicted=falls, in_part=turn, holds=True)
