"""The check of the residual stream: forgotten skips, blocks outside, dead branches."""

from torch import nn

from rankfall.check.layer import StreamReport, show_number
from rankfall.check.named import Result, failed, named, passed, warned
from rankfall.check.recording import RecordedStream

MOST_LINES = 2  # of what a stream lacks


@named("stream-whole", states=False)
def stream_whole(recording: RecordedStream) -> Result:
    """Does one residual stream hold all blocks, and does every branch add something to it?

    An addition x + f(x) or g x + f(x) belongs to the stream if x is the sum of the addition before it, up to a norm or a scale. Blocks
    that no stream holds fail, as do a stream that is cut where a block forgets its skip, a skip that goes around the layers, and a skip
    from a state before the one that its branch reads. In layers without a skip around them, a part of several maps without a skip fails
    if another part has one. A map of joined states, W [x, x0] as in a U-Net, belongs to the stream, and one that changes the number of
    tokens begins another. Branches that return zero are a start as of ReZero if all of their name do, and pass; if
    only some do, these are dead and fail. A skip that is added twice fails. A rectifier on the stream, a list that holds one module
    several times, a matrix that two modules share and blocks that are in no layer warn.
    """
    flow, report = recording.flow, recording.report
    lines = [*([report.cut] if report.cut else []), *flow.missing]
    if lines:
        more = f"; and {len(lines) - MOST_LINES} more" * (len(lines) > MOST_LINES)
        return failed("; ".join(lines[:MOST_LINES]) + more, flow.joins[0] if flow.joins else "")
    count = f"{len(flow.branches)} branches in {flow.depth} layers"
    zero = [addition.branch for addition in recording.additions if not addition.value]
    kinds = {branch.name for branch in zero}
    namesakes = [branch for branch in flow.branches if branch.name in kinds]
    if zero and len(namesakes) == len(zero):
        names = ", ".join(sorted(kinds))
        return passed(f"{count}; {names} return zero in all layers, as ReZero and zero-initialised last maps do")
    if zero:
        return failed(
            f"{len(zero)} of {count} return zero, and others of the same name do not", recording.path_of(zero[0])
        )
    if twice := [addition for addition in recording.additions if addition.doubled]:
        return failed(f"the skip before {len(twice)} of {count} is added twice", recording.path_of(twice[0].branch))
    if cut := [addition for addition in recording.additions if addition.rectified]:
        return warned(
            f"the stream loses its negative numbers before {len(cut)} of {count}: does a rectifier act on it, in place?",
            recording.path_of(cut[0].branch),
        )
    if shared := shared_weights(recording):
        return warned(f"{shared[1]}: are copies meant?", shared[0])
    if flow.unmeasured:
        return warned(flow.unmeasured[0])
    if flow.inside:
        return passed(f"{flow.depth} layers with additions x + f(x) inside them")
    if not flow.skips:
        return warned(f"{flow.depth} layers without residual additions x + f(x)")
    return passed(f"{count}, all with skips")


def shared_weights(recording: RecordedStream) -> tuple[str, str] | None:
    """Return a list that holds one layer several times, or else a matrix of the layers that two modules share, with a sentence on it."""
    layers = tuple(f"{name}." for name in recording.flow.layers)
    owners: dict[int, tuple[str, str, nn.Module]] = {}
    for name, module in recording.examined.model.named_modules(remove_duplicate=False):
        entries = module._modules.values() if isinstance(module, nn.ModuleList | nn.Sequential) else ()
        parts = [part for part in entries if part is not None and any(True for _ in part.parameters())]
        if len({id(part) for part in parts}) == 1 < len(parts):
            return name or "the model", f"{len(parts)} entries of {name or 'the model'} are one module"
        layer = next((part for part in layers if f"{name}.".startswith(part)), "")
        for key, weight in module._parameters.items() if layer else ():
            if weight is None or weight.dim() < 2:
                continue
            path, its_layer, owner = owners.setdefault(id(weight), (f"{name}.{key}", layer, module))
            if path != f"{name}.{key}" and (
                layer != its_layer or module is not owner
            ):  # a module may have two names in its layer
                return f"{name}.{key}", f"{name}.{key} and {path} are one matrix"
    return None


def describe_cut(report: StreamReport, before: StreamReport, joins: tuple[str, ...]) -> str:
    """Return a sentence on the modules that no skip passes, and the residual on both sides of them."""
    ends = [before.layers[-1].residual, report.layers[0].residual]
    if None not in ends and abs(ends[0] - ends[1]) <= 1e-9 * ends[1]:  # type: ignore[operator]
        ends[0] = before.layers[-2].residual  # the last layer forgets its last skip: its state lies behind the cut
    through = f"{', '.join(joins[:4])}{' and others' * (len(joins) > 4)}"
    return (
        f"the stream is cut: no skip passes {through}, between {before.layers[-1].name} and {report.layers[1].name}, where the residual "
        f"goes from {show_number(ends[0])} to {show_number(ends[1])}"
    )
