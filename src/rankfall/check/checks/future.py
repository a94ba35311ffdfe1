"""The check of causal masks."""

from collections import Counter
from functools import partial

import torch

from rankfall.check.equal import call_argument, change_named, exchange_token, holders_of_tokens, named_inputs
from rankfall.check.named import FAIL, NO_MIXER, Limit, Result, failed, named, passed, skipped, warned
from rankfall.check.recording import RecordedStream
from rankfall.streams.axes import differs
from rankfall.streams.editor import run_through
from rankfall.streams.flow import Branch, Edits
from rankfall.streams.mixing import MixingTrial, TokenMixing, directions, try_places
from rankfall.streams.record import tensors_in

FEW = Limit(
    3,
    "a model in which every token sees all earlier ones and at most this many ahead has a mask that is shifted",
    "our choice: masks are off by one (tril with diagonal=1), and a convolution of 4 that is cut at the wrong end by 3; a model that reads "
    "both ways sees as far ahead as back",
)


@named("no-future-leak", FEW)
def no_future_leak(recording: RecordedStream) -> Result:
    """Does a token leave the tokens before it alone?

    In each layer by itself, one token of each branch's input is changed, and earlier rows of the branch's output must stay the same. Then
    the last token of the inputs is changed, and the states of all earlier tokens must stay the same. If inputs hold steps of several
    tokens, the last step and one in the middle are changed, and the output of earlier steps must stay the same. A change of all outputs is
    allowed, as by a prefix.

    A model whose layers all read both ways is an encoder, and the check does not apply. It does apply if attention weights or masks are
    triangular and no other stream is causal. A branch fails if it reads ahead in some layers and not in others, if it sees a few tokens
    ahead, or if it sees only later tokens (a reversed mask). A causal mask fails if it has more keys than tokens and begins at the first
    key, as without the offset of a cache.
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
    if inverted := next((heads.where for heads in recording.heads if heads.inverted), None):
        return failed("tokens see later ones, and neither themselves nor earlier ones: is the mask inverted?", inverted)
    looking_back = [branch for branch in mixers if branch.forwards]
    if not looking_back:
        return failed("reversed: every token sees later tokens and no earlier one", recording.path_of(leaks[0]))
    ahead, back = max(branch.ahead for branch in leaks), max(branch.after for branch in mixers)
    if 0 < ahead <= FEW and back > ahead and len(looking_back) == len(leaks) and sees_few_ahead(recording):
        return failed(
            f"sees {ahead} token{'s' * (ahead > 1)} ahead in {len(leaks)} of {len(mixers)} branches",
            recording.path_of(leaks[0]),
        )
    exceptions = branches_unlike_others(mixers)
    if exceptions:
        layers = ", ".join(str(branch.layer) for branch in exceptions)
        return failed(f"causal except layer {layers}, where a token sees later ones", recording.path_of(exceptions[0]))
    if reversed_mixers := [branch for branch in leaks if not branch.forwards]:
        verdict = failed if 2 * len(reversed_mixers) < len(mixers) else warned  # bidirectional stacks alternate
        layers = ", ".join(str(branch.layer) for branch in reversed_mixers)
        return verdict(
            f"tokens see only later ones in layer {layers}, and earlier ones in others",
            recording.path_of(reversed_mixers[0]),
        )
    triangular = next((heads for heads in recording.heads if heads.triangular), None)
    if triangular is not None:
        if triangular.zeroed:
            return failed(
                f"scores of layer {triangular.layer} are multiplied by a triangular mask, so that later tokens keep a score of 0: fill it "
                "with -inf",
                triangular.where,
            )
        return failed(
            f"weights of layer {triangular.layer} are causal, but its tokens see later ones: is the axis of the softmax wrong, are heads "
            "split or joined without a transpose, or is a norm over tokens?", triangular.where,
        )  # fmt: skip
    causal = [flow.name for flow in recording.examined.flows if flow.causal]  # a decoder, whose mask it is
    if recording.triangles and not causal:
        prefix = causal_inputs(recording).verdict != FAIL  # a prefix sees itself both ways; the last token is behind it
        verdict = warned if prefix else failed
        behind_softmax = "; it hides weights behind the softmax, whose sums hold later tokens" * recording.late_mask
        return verdict(
            f"a triangular mask is made, but all {len(leaks)} branches see later tokens{behind_softmax}",
            recording.path_of(leaks[0]),
        )
    if recording.unread_mask and not causal:
        return warned("a triangular mask is made or held, and no scores meet it: is the mask forgotten?")
    if causal:
        return skipped(f"this stream reads both ways, and {causal[0]} is causal")
    return skipped(
        "the model reads both ways, and no mask is triangular; if it is to predict the next token, its mask is missing"
    )


def sees_few_ahead(recording: RecordedStream) -> bool:
    """Return whether the last token changes at most FEW tokens before it. In a block of tokens that all see each other, it changes more."""
    trial = MixingTrial(recording.flow, {branch.number: TokenMixing() for branch in recording.flow.branches})
    arguments, model = recording.examined.arguments, recording.examined.model
    run_through(model, arguments, recording.flow, Edits(edit=trial.keep, join=trial.keep_part))
    try_places(model, arguments, recording.flow, trial, (1.0,))
    return max(directions(changes, recording.flow.layout)[3] for changes in trial.results.values()) <= FEW


def branches_unlike_others(mixers: list[Branch]) -> list[Branch]:
    """Return the branches that read ahead although branches of their name in other layers do not."""
    counts = Counter(branch.name for branch in mixers if not branch.backwards)
    return [branch for branch in mixers if branch.backwards and branch.forwards and counts[branch.name]]


def causal_inputs(recording: RecordedStream) -> Result:
    """Change the last token of each input that the stream begins with. States of earlier tokens must stay the same.

    Rows of hidden tokens, as of padding on the left, may read nothing and are left out.
    """
    shape = recording.report.shape
    sentence = f"causal in {recording.flow.depth} layers"
    entered = False
    read = torch.ones(shape, dtype=torch.bool) if recording.hidden is None else ~recording.hidden  # (S, T)
    for name in sorted(holders_of_tokens(recording.examined.arguments, shape)):
        changed = change_named(recording.examined.arguments, {name}, lambda tokens: exchange_token(tokens, -1, 0))
        assert changed is not None
        after = run_through(recording.examined.model, changed, recording.flow, Edits())
        differences = [
            differs(recording.flow.layout.to_rows(state), before) & read[..., None]
            for state, before in zip(after.states, recording.states)
        ]
        if not bool(differences[0].any()):
            continue  # the input of another stream, such as an encoder, which this stream may read
        entered = True
        rows = differences[0].any(-1).any(0).nonzero().flatten().tolist()
        if len(rows) == 1 and rows[0] != shape[1] - 1:
            return skipped("the stream holds the tokens in another order than the inputs")
        for layer, changes in enumerate(differences):
            if bool(changes[:, :-1].any()):
                position = int(changes[:, :-1].any(-1).any(0).nonzero()[0]) + 1
                where = f"layer {layer}" if layer else "the state before the first layer"
                return failed(
                    f"token {position} of {shape[1]} sees the last one in {where}", recording.layer_path(layer)
                )
        for (_, output), (_, before) in zip(tensors_in(after.output), tensors_in(recording.output)):
            by_token = output.dim() == 3 and output.is_floating_point() and tuple(output.shape[:2]) == shape
            if by_token and bool((differs(output, before) & read[..., None])[:, :-1].any()):
                return failed("the output of earlier tokens sees the last one, behind the last layer")
    if entered:
        return passed(f"{sentence}: changing the last token changes no state before it")
    return later_step(recording) or passed(sentence)


def later_step(recording: RecordedStream) -> Result | None:
    """Change a step of each input whose steps are several tokens, such as a state and an action. Return a failure if earlier steps see it.

    If a step changes all outputs, the input is a prefix or that of an encoder.
    """
    samples, tokens = recording.report.shape
    inputs = {
        name: tensor
        for name, tensor in named_inputs(recording.examined.arguments).items()
        if samples == len(tensor) and 2 < tensor.shape[1] < tokens
    }
    for name, tensor in inputs.items():
        steps = tensor.shape[1]
        for step in (steps - 1, steps // 2):
            exchange = partial(exchange_token, position=step, source=0)
            changed = change_named(recording.examined.arguments, {name}, exchange)
            assert changed is not None
            after = run_through(recording.examined.model, changed, recording.flow, Edits())
            for (_, output), (_, before) in zip(tensors_in(after.output), tensors_in(recording.output)):
                if output.shape[:2] == (samples, steps) and output.shape == before.shape and output.is_floating_point():
                    changes = differs(output, before).transpose(0, 1).flatten(1).any(1)  # (steps,)
                    if bool(changes[:step].any()) and not bool(changes[0]):
                        first = int(changes.nonzero()[0]) + 1
                        return failed(
                            f"the layers are causal, and the output of step {first} of {steps} changes with step {step + 1} of "
                            f"{call_argument(name)}: do tokens stand in another order than the output is read?"
                        )
    return None
