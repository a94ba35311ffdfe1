from itertools import pairwise

from rankfall import Decision, Read, change_of, compare, judge, within
from studies.claims.rules import lies_between
from studies.claims.trained_bias.reading import FALLS, GAP, LEARNED, learned_depths, say_depths

DOWN, UP = within(0.0, 0.05, "change of the gap between neighbouring depths", "with skips, a level step")
THRESHOLDS = (LEARNED, FALLS, DOWN, UP)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    layers = learned_depths(rows, "skips")
    sentence = say_depths(rows, "skips")
    if len(layers) < 3:  # the change of a single step may be up or down
        return judge(sentence, None, "deeper networks with skips that learn the task")
    changes = [change_of(rows, GAP, "skips", a, b) for a, b in pairwise(layers)]
    steps = [compare(change, FALLS) for change in changes]
    level = any(lies_between(change, DOWN, UP) for change in changes)
    number = change_of(rows, GAP, "skips", layers[0], layers[-1])
    wants = "more seeds, to distinguish steps of the gap from zero"
    unclear = "undecided" in steps
    return judge(sentence, number, wants, holds="below" in steps, in_part=level, undecided=unclear, contradicted=True)
