from rankfall import Decision, Extension, Read, Threshold, band_of, is_on, judge
from studies.claims.rules import by_parts, true_of_all
from studies.claims.triggers_need_a_sink.names import DRAWN, KEY, QUIET, RELU, SOFTMAX, SOLVED

SINK = Threshold(0.8, "above", DRAWN, SOFTMAX)
NO_SINK = Threshold(0.1, "below", DRAWN, RELU)
LEARNED = Threshold(0.9, "above", SOLVED, "softmax and ReLU; else undecided")
SILENT = Threshold(0.2, "below", QUIET, "softmax and ReLU; else undecided")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    weight, solved, quiet = (
        {line: band_of(rows, quantity, line, last) for line in (SOFTMAX, RELU, KEY)}
        for quantity in (DRAWN, SOLVED, QUIET)
    )
    able = {line: true_of_all((is_on(solved[line], LEARNED), is_on(quiet[line], SILENT))) for line in weight}
    sentence = "Weight on the first token where the answer is zero: " + "; ".join(
        f"{line} {weight[line].mean:.2f} ({solved[line].mean:.0%} of the answer explained)" for line in (SOFTMAX, RELU)
    )
    lazy = [line for line in (SOFTMAX, RELU) if able[line] is not True]
    key = is_on(weight[KEY], NO_SINK) if able[KEY] is True else None
    return judge(
        f"{sentence}.",
        weight[SOFTMAX],
        f"models that have learned the task with {', '.join(lazy)}" if lazy else "more seeds or steps",
        [Extension(f"a key of no value in place of ReLU, which leaves {weight[KEY].mean:.2f}", key)],
        undecided=bool(lazy),
        **by_parts((is_on(weight[SOFTMAX], SINK), is_on(weight[RELU], NO_SINK))),
    )
