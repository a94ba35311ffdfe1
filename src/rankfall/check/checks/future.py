"""The check of causal masks."""

from collections import Counter

from rankfall.check.equal import change_named, token_inputs
from rankfall.check.named import Limit, Result, failed, named, passed, skipped, warned
from rankfall.check.recording import Recording
from rankfall.streams.arguments import Arguments
from rankfall.streams.axes import differs
from rankfall.streams.edits import Edits
from rankfall.streams.flow import Branch
from rankfall.streams.passes import run_through

FEW = Limit(
    2,
    "a model in which every token sees all earlier ones and at most this many ahead has a mask that is shifted",
    "our choice: masks are off by one (tril with diagonal=1); a model that reads both ways sees as far ahead as back",
)


@named("no-future-leak", FEW)
def no_future_leak(seen: Recording) -> Result:
    """Does a token leave the tokens before it alone?

    One token of each branch's input is changed, and earlier rows of its output must stay the same, in each layer by itself. Then the last
    token of the inputs is changed, and all states before it must stay. A model in which all layers read both ways is an encoder, and the
    check does not apply. A branch that reads ahead in some layers and not in others, sees a few tokens ahead, or only tokens behind it
    (a reversed mask) fails.
    """
    mixers = [branch for branch in seen.flow.branches if branch.mixes]
    leaks = [branch for branch in mixers if branch.backwards]
    if not mixers:
        return skipped("nothing mixes tokens")
    if not leaks:
        return causal_inputs(seen)
    forwards = [branch for branch in mixers if branch.forwards]
    if not forwards:
        return failed("reversed: every token sees later tokens and no earlier one", seen.path_of(leaks[0]))
    ahead, back = max(branch.ahead for branch in leaks), max(branch.after for branch in mixers)
    if ahead <= FEW and back > ahead and len(forwards) == len(leaks):
        return failed(
            f"sees {ahead} token{'s' * (ahead > 1)} ahead in {len(leaks)} of {len(mixers)} branches",
            seen.path_of(leaks[0]),
        )
    odd = odd_layers(mixers)
    if odd:
        layers = ", ".join(str(branch.layer) for branch in odd)
        return failed(f"causal except layer {layers}, where a token sees later ones", seen.path_of(odd[0]))
    if any(not branch.forwards for branch in leaks):
        return warned("some layers read forwards and others backwards", seen.path_of(leaks[0]))
    return skipped("the model reads both ways")


def odd_layers(mixers: list[Branch]) -> list[Branch]:
    """Return the branches that read ahead although branches of their name in other layers do not."""
    causal = Counter(branch.name for branch in mixers if not branch.backwards)
    return [branch for branch in mixers if branch.backwards and branch.forwards and causal[branch.name]]


def causal_inputs(seen: Recording) -> Result:
    """Change the last token of the inputs, which no state before it may see."""
    said = f"causal in {seen.flow.depth} layers"
    shape = tuple(seen.states[0].shape[:2])
    changed = change_last(seen.examined.arguments, shape)
    if changed is None:
        return passed(f"{said}; the inputs are no tokens that can be changed")
    after = run_through(seen.examined.model, changed, seen.flow, Edits())
    for layer, (state, before) in enumerate(zip(after.states, seen.states)):
        apart = differs(seen.flow.layout.to_rows(state)[:, :-1], before[:, :-1])
        if bool(apart.any()):
            place = int(apart.any(-1).any(0).nonzero()[0]) + 1
            where = f"layer {layer}" if layer else "the state before the first layer"
            return failed(f"token {place} of {shape[1]} sees the last one in {where}", seen.layer_path(layer))
    return passed(f"{said}: changing the last token changes no state before it")


def change_last(arguments: Arguments, shape: tuple[int, ...]) -> Arguments | None:
    """Return the arguments with another last token (B, T) or (B, T, D); None if they hold none."""
    tokens = token_inputs(arguments, (shape[0], shape[1]))
    named = {str(place): one for place, one in enumerate(arguments.args)} | arguments.kwargs
    if not tokens:
        tokens = {
            name
            for name, one in named.items()
            if hasattr(one, "dim") and one.dim() == 3 and one.is_floating_point() and tuple(one.shape[:2]) == shape
        }

    def change(one: object) -> object:
        moved = one.clone()  # type: ignore[attr-defined]
        moved[:, -1] = moved[:, 0].flip(-1) if moved.dim() > 2 else moved[:, 0]
        return moved

    return change_named(arguments, tokens, change)  # type: ignore[arg-type]
