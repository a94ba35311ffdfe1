"""The check of the size of activations: explosion, massive channels, dead and saturated units."""

from rankfall.check.named import Limit, Result, failed, named, passed, skipped, warned
from rankfall.check.recording import RecordedStream

JUMP = Limit(
    30,
    "a branch that is this many times as large as its state warns, behind layer 1 fails",
    "our choice: such a branch replaces its state; an embedding of std 0.02 before branches of unit size makes 50 in layer 1 alone",
)
TINY = Limit(
    1e-3,
    "if no branch reaches this share of the size of its state, it warns",
    "our choice: all layers together then change a state by less than bfloat16 resolves",
)
MASSIVE = Limit(
    1000,
    "a number above this multiple of the median size of its state fails",
    "massive activations exceed 1,000 times the median (Sun et al. 2024, arXiv:2402.17762)",
)
LARGE = Limit(
    100,
    "above this multiple it warns",
    "our choice: of a normal distribution the largest of a million numbers is 7 times the median",
)
DEAD = Limit(
    0.9,
    "a share of units above this, zero or saturated for all tokens, fails",
    "our choice: a layer with a tenth of its units left",
)
MANY = Limit(
    0.75,
    "above this share it warns",
    "our choice: equal tokens leave half of the units of a random rectifier zero, and three quarters are half of the rest",
)


EPS = Limit(
    1e-3,
    "an eps of a norm above this that is also above a tenth of the variance that it divides by fails",
    "our choice: layers use 1e-12 to 1e-5; from a tenth on the size of a state passes the norm",
)


@named("activations-sane", JUMP, TINY, MASSIVE, LARGE, DEAD, MANY, EPS)
def activations_sane(recording: RecordedStream) -> Result:
    """Are activations of a reasonable size, and do units react to tokens?

    A norm whose output halves if its input doubles fails: it divides by the square of a size. Then three ratios: the RMS of a branch over
    the RMS of the state that it is added to; the largest absolute number of a state over the median one that is not zero, with the branch
    that writes most to its channel; the share of units of an activation function that are zero (below 0.001 of the largest) or, of tanh and
    sigmoid, within 0.001 of an end of the range, for all tokens of the example. Small branches pass if each has a learned factor that is
    small, as of LayerScale. Then the eps of each norm, over the median variance of its rows. A linear map that reads the output of another
    one as it is warns if the first of the two has more outputs than inputs, or as many in a branch that acts token by token.
    """
    if not recording.additions:
        return skipped("no branches")
    if inverse := recording.inverse:
        sentence = f"the output of {len(inverse)} norms halves if their input doubles: is a square root missing?"
        return failed(sentence, inverse[0])
    results = [*explosions(recording), *massive(recording), *dead_units(recording), *large_eps(recording)]
    bad = next((result for result in results if result.verdict == "fail"), results[0] if results else None)
    if bad is not None:
        return bad
    norms = [layer.norm or 0.0 for layer in recording.report.layers]
    most = max((addition.ratio for addition in recording.additions if addition.state), default=0.0)
    if recording.unbent:
        maps = f"{len(recording.unbent)} linear maps read the output of another one as it is"
        return warned(f"{maps}: is a function missing between them?", recording.unbent[0][0])
    if 0 < most < TINY and recording.flow.skips and recording.gates < len(recording.additions):
        return warned(f"the layers add nothing: the largest branch is {most:.2g} times the size of its state")
    return passed(f"norm of a token {norms[0]:.3g} to {norms[-1]:.3g}; branches add up to {most:.2g} times their state")


def explosions(recording: RecordedStream) -> list[Result]:
    """Return a result for the branch with the largest ratio to its state, if it is too large."""
    sized = [addition for addition in recording.additions if addition.state and addition.value and recording.flow.skips]
    for branches, verdict in (([addition for addition in sized if addition.branch.layer > 1], failed), (sized, warned)):
        most = max(branches, key=lambda addition: addition.ratio, default=None)
        if most is not None and most.ratio > JUMP:
            sentence = f"layer {most.branch.layer} adds {most.ratio:.3g} times the size of its state"
            return [verdict(sentence, recording.path_of(most.branch))]
    return []


def massive(recording: RecordedStream) -> list[Result]:
    """Return a result for the largest number of all states, if it is massive, with the branch that writes it."""
    sizes = [state.abs() for state in recording.states]
    ratios = [float(size.max() / size[size > 0].median()) if bool(size.any()) else 0.0 for size in sizes]
    first = next((layer for layer, ratio in enumerate(ratios) if ratio > LARGE), None)
    if first is None:
        return []
    layer = next((layer for layer, ratio in enumerate(ratios) if ratio > MASSIVE), first)
    channel = int(sizes[layer].amax((0, 1)).argmax())
    before = [addition for addition in recording.additions if addition.branch.layer <= max(layer, 1)]
    writers = [addition for addition in before if len(addition.channels) > channel]
    where = "in the first state" if not layer else f"after layer {layer}"
    writer = max(writers, key=lambda addition: float(addition.channels[channel]), default=None)
    path = recording.path_of(writer.branch) if layer and writer is not None else ""
    verdict = failed if ratios[layer] > MASSIVE else warned
    return [verdict(f"channel {channel} {where} holds {ratios[layer]:.3g} times the median size", path)]


def dead_units(recording: RecordedStream) -> list[Result]:
    worst = max(recording.units, key=lambda units: units.dead, default=None)
    if worst is None or worst.dead <= MANY:
        return []
    sentence = f"{worst.dead:.0%} of the units behind {worst.function} are zero or saturated for all tokens"
    return [(failed if worst.dead > DEAD else warned)(sentence, worst.where)]


def large_eps(recording: RecordedStream) -> list[Result]:
    worst = max(recording.norms, key=lambda norm: norm.eps / norm.variance, default=None)
    if worst is None or worst.eps <= EPS or worst.eps <= 0.1 * worst.variance:
        return []
    sentence = f"the eps of a norm is {worst.eps:.2g}, and the variance that it divides by {worst.variance:.2g}"
    return [failed(sentence, worst.where)]
