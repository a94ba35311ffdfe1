"""The check of causal masks."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from torch import Tensor

from rankfall.check.checks.loss import reads_labels
from rankfall.check.named import FAIL, NO_MIXER, Limit, Result, failed, named, passed, skipped, warned
from rankfall.check.passes import call_argument, float_inputs, named_tensors, token_inputs
from rankfall.check.recording import RecordedStream
from rankfall.check.steps import (
    NORMS,
    SUMS,
    TRANSFORMS,
    StepTrial,
    causal_without,
    held_choices,
    step_inputs,
    try_input,
    try_rows,
)
from rankfall.streams.axes import differs
from rankfall.streams.cuts import states_of
from rankfall.streams.editor import run_through
from rankfall.streams.flow import Edits
from rankfall.streams.mixing import PLACES, MixingTrial, TokenMixing, directions, try_places
from rankfall.streams.record import CHOICES

FEW = Limit(
    3,
    "a model in which every token sees all earlier ones and at most this many ahead has a mask that is shifted",
    "our choice: masks are off by one (tril with diagonal=1), and a convolution of 4 that is cut at the wrong end by 3; a model that reads "
    "both ways sees as far ahead as back",
)


CHOSEN = (
    "causal but for {}, by which later tokens change the choice of earlier ones: it is not known when a model writes"
)
BOTH = "the model reads both ways"


@named("no-future-leak", FEW)
def no_future_leak(recording: RecordedStream) -> Result:
    """Does a token leave the tokens before it alone?

    In each layer by itself, one token of each branch's input is changed, and earlier rows of the branch's output must stay the same. Then
    three steps of each input that the stream begins with are changed, one at a time, and the states and outputs of earlier steps must stay
    the same. A step may be a token, a part of one or several tokens. A change of all outputs is allowed if inputs are a prefix, or if a
    code of all tokens enters the stream: that of another stream, or an output that the states of the stream do not change. If several
    inputs have fewer steps than there are tokens, and the tokens of each step are equal, it warns.

    A model whose layers all read both ways is an encoder, and the check does not apply. It does apply if attention weights or masks are
    triangular and no other stream is causal, and if the loss takes the next token as the label of each. It also applies if branches are
    causal while sums and norms over tokens stay as they are; if they are causal with Fourier transforms over twice as many tokens, or
    while the choice of tokens stays the same, it warns. A branch fails if it reads ahead in some layers and not in others, if it sees a
    few tokens ahead, or if it sees only later tokens (a reversed mask). A causal mask fails if it has more keys than tokens and begins at
    the first key, as without the offset of a cache.
    """
    mixers = [branch for branch in recording.flow.branches if branch.mixes]
    leaks = [branch for branch in mixers if branch.backwards]
    if recording.misaligned:
        branch, keys = recording.misaligned[0]
        tokens = recording.report.tokens
        return failed(
            f"the causal mask of layer {branch.layer} begins at the first of {keys} keys, so that the first of {tokens} tokens sees one: "
            f"is the offset of a cache missing, as in tril(diagonal={keys - tokens})?", recording.path_of(branch),
        )  # fmt: skip
    if not mixers:
        return skipped(NO_MIXER[bool(recording.flow.missing)])
    if not leaks:
        return causal_inputs(recording)
    first = recording.path_of(leaks[0])
    if chosen := causal_without(recording, CHOICES):
        return warned(CHOSEN.format(chosen[0]), first)
    if inverted := next((heads.where for heads in recording.heads if heads.inverted), None):
        return failed("tokens see later ones, and neither themselves nor earlier ones: is the mask inverted?", inverted)
    looking_back = [branch for branch in mixers if branch.forwards]
    causal = [flow.name for flow in recording.examined.flows if flow.causal]
    if not looking_back and causal:
        return skipped(f"this stream reads backwards, and {causal[0]} is causal")
    if not looking_back:
        return failed("reversed: every token sees later tokens and no earlier one", first)
    ahead, back = max(branch.ahead for branch in leaks), max(branch.after for branch in mixers)
    if 0 < ahead <= FEW and back > ahead and all(branch.forwards for branch in leaks) and sees_few_ahead(recording):
        seen = f"{ahead} token{'s' * (ahead > 1)}"
        return failed(f"sees {seen} ahead in {len(leaks)} of {len(mixers)} branches", first)
    # branches that read both ways although branches of their name in other layers read back alone
    counts = Counter(branch.name for branch in mixers if branch.forwards and not branch.backwards)
    if exceptions := [branch for branch in leaks if branch.forwards and counts[branch.name]]:
        layers = ", ".join(str(branch.layer) for branch in exceptions)
        return failed(f"causal except layer {layers}, where a token sees later ones", recording.path_of(exceptions[0]))
    if backwards := [branch for branch in leaks if not branch.forwards]:
        verdict = failed if 2 * len(backwards) < len(mixers) else warned  # bidirectional stacks alternate
        layers = ", ".join(str(branch.layer) for branch in backwards)
        sentence = f"tokens see only later ones in layer {layers}, and earlier ones in others"
        return verdict(sentence, recording.path_of(backwards[0]))
    if triangular := next((heads for heads in recording.heads if heads.triangular), None):
        sentence = (
            f"scores of layer {triangular.layer} are multiplied by a triangular mask, so that later tokens keep a score of 0: fill it "
            "with -inf"
            if triangular.zeroed
            else f"weights of layer {triangular.layer} are causal, but its tokens see later ones: is the axis of the softmax wrong, are "
            "heads split or joined without a transpose, or is a norm over tokens?"
        )
        return failed(sentence, triangular.where)
    if sums := causal_without(recording, SUMS | NORMS):
        cause = "is a norm or a mean over all of them, later ones too?"
        return failed(f"causal but for {' and '.join(sums)} over tokens: {cause}", first)
    if transforms := causal_without(recording, TRANSFORMS):
        wraps = f"{transforms[0]} over {recording.report.tokens} tokens, which wraps round"
        return warned(f"causal but for {wraps}: a causal convolution needs zeros up to twice as many", first)
    if recording.triangles and not causal:
        prefix = causal_inputs(recording).verdict != FAIL  # a prefix sees itself both ways; the last token is behind it
        behind_softmax = "; it hides weights behind the softmax, whose sums hold later tokens" * recording.late_mask
        sentence = f"a triangular mask is made, but all {len(leaks)} branches see later tokens{behind_softmax}"
        return (warned if prefix else failed)(sentence, first)
    if recording.unread_mask and not causal:
        return warned("a triangular mask is made or held, and no scores meet it: is the mask forgotten?")
    if causal:
        return skipped(f"this stream reads both ways, and {causal[0]} is causal")
    if reads_labels(recording, 1):
        return failed(f"{BOTH}, and the label of each token is the next one: is the causal mask missing?")
    return skipped(f"{BOTH}, and no mask is triangular; if it is to predict the next token, its mask is missing")


def sees_few_ahead(recording: RecordedStream) -> bool:
    """Return whether each of three tokens changes as many tokens before it, at most FEW. In a block of tokens that all see each other, the
    number differs."""
    model, arguments, flow = recording.examined.model, recording.examined.arguments, recording.flow
    ahead = set()
    for place in (*PLACES, 1.0):
        trial = MixingTrial(flow, {branch.number: TokenMixing() for branch in flow.branches})
        run_through(model, arguments, flow, Edits(edit=trial.keep, join=trial.keep_part))
        try_places(model, arguments, flow, trial, (place,))
        ahead.add(max(directions(changes, flow.layout)[3] for changes in trial.results.values()))
    return len(ahead) == 1 and max(ahead) <= FEW


def causal_inputs(recording: RecordedStream) -> Result:
    """Change steps of each input that the stream begins with. States and outputs of earlier steps must stay the same.

    Rows of hidden tokens, as of padding on the left, may read nothing and are left out.
    """
    tokens = recording.report.tokens
    sentence = f"causal in {recording.flow.depth} layers"
    arguments, shape = recording.examined.arguments, recording.report.shape
    vectors = {name for name, x in float_inputs(arguments).items() if x.dim() == 3 and tuple(x.shape[:2]) == shape}
    holders = token_inputs(arguments, shape) or vectors
    trials = {step_input: try_input(recording, *step_input) for step_input in step_inputs(recording)}
    # the others are inputs of other streams, such as an encoder
    trials = {step_input: trial for step_input, trial in trials.items() if trial.entered}
    others, coded = {trial.steps for trial in trials.values()}, False
    if (copies := equal_in_steps(recording, trials.values())) > 1:
        return warned(
            f"each step of the inputs has {copies} equal tokens, and several inputs make them: does each hold the sum of all, as by += on "
            "a tensor of several names?"
        )
    for step_input, trial in trials.items():
        if trial.steps == tokens and all(int(rows[0].sum()) == 1 for rows in trial.rows.values()):
            entries = [earliest(trial.rows[step][0]) for step in sorted(trial.rows)]
            if entries != sorted(entries):
                return skipped("the stream holds the tokens in another order than the inputs")
        strict = trial.name in holders
        result = find_leak(recording, trial, others, strict)
        if result and not find_leak(recording, trial, others, False) and reads_code(recording, step_input, trial):
            result, coded = None, True
        if result and (held := held_choices(recording, trial.steps)):
            again = find_leak(recording, try_input(recording, *step_input, held), others, strict, states=False)
            return result if again else warned(CHOSEN.format(held.names[0]))
        if result:
            return result
    unseen = coded or not any(trial.outputs for trial in trials.values())
    if unseen and (leak := try_rows(recording).leak(set(), False, tokens)):
        step = f"the output of step {leak[0] + 1} of {leak[1]}"
        return failed(f"the layers are causal, and {step} changes with token {leak[2] + 1} of the first state")
    if coded:
        return passed(f"{sentence}, which read a code of all tokens")
    return passed(sentence + ": changing the last token changes no state before it" * bool(trials))


def equal_in_steps(recording: RecordedStream, trials: Iterable[StepTrial]) -> int:
    """Return how many equal tokens of the first state belong to each step of several inputs; 1 if they differ."""
    copies = 1
    for steps, inputs in Counter(trial.steps for trial in trials).items():
        if inputs > 1 and recording.report.tokens % steps == 0:
            groups = recording.states[0].unflatten(1, (steps, -1))
            copies = copies if bool(differs(groups, groups[:, :, :1]).any()) else max(copies, groups.shape[2])
    return copies


def find_leak(
    recording: RecordedStream, trial: StepTrial, others: set[int], strict: bool, states: bool = True
) -> Result | None:
    """Return a failure if a step changes a state or output of an earlier one. If not `strict`, changes of all of them are no leak."""
    tokens, steps = recording.report.tokens, trial.steps
    first = {step: [earliest(rows) for rows in by_layer] for step, by_layer in trial.rows.items()}
    for step, layers in first.items() if states and steps % tokens == 0 else ():
        for layer, row in enumerate(layers):
            varies = len({other[layer] for other in first.values()}) > 1
            if row < step * tokens // steps and (strict or varies):
                sees = "the last one" if step == steps - 1 else f"step {step + 1} of the inputs"
                where = f"layer {layer}" if layer else "the state before the first layer"
                return failed(f"token {row + 1} of {tokens} sees {sees} in {where}", recording.layer_path(layer))
    # an output may belong to the patch of vectors that it is read from, and predict the next one
    patches = named_tensors(recording.examined.arguments)[trial.name].is_floating_point() and steps % tokens == 0
    leak = trial.leak(others, strict, tokens if patches else steps)
    if leak is None:
        return None
    return failed(
        f"the layers are causal, and the output of step {leak[0] + 1} of {leak[1]} changes with step {leak[2] + 1} of "
        f"{call_argument(trial.name)}: does something before, beside or behind them read later steps, or has the output another order?"
    )


def earliest(rows: Tensor) -> int:
    """Return the index of the first true one of rows (T,), or T."""
    return int(rows.double().argmax()) if bool(rows.any()) else len(rows)


def reads_code(recording: RecordedStream, step_input: tuple[str, int, int], trial: StepTrial) -> bool:
    """Return whether all outputs or states change with each step by design.

    Another stream reads both ways or backwards, or a code of all tokens, as of a posterior, enters all states: an output without steps
    changes with the inputs, and not with the states of this stream.
    """
    for flow in recording.examined.flows:
        if flow is not recording.flow and any(branch.mixes for branch in flow.branches):
            other = replace(recording, flow=flow, states=states_of(recording.examined, flow), hidden=None)
            last = try_input(other, *step_input).rows[trial.steps - 1][0]
            if bool(last.any()) and (not flow.causal or bool(last[0])):
                return True
    if not all(bool(rows[0][0]) for rows in trial.rows.values()):
        return False
    with_steps = {path for path, _, _, size in trial.outputs if size == trial.steps}
    return bool(trial.changed - with_steps - try_rows(recording).changed)
