"""The check of the residual stream: forgotten skips, blocks outside, dead branches."""

import re

from torch import nn

from rankfall.check.layer import StreamReport, show_number
from rankfall.check.named import Result, failed, named, passed, warned
from rankfall.check.recording import RecordedStream
from rankfall.streams.flow import Branch

MOST_LINES = 2  # sentences on what a stream lacks; more are counted, since a result is read at a glance


@named("stream-whole", states=False)
def stream_whole(recording: RecordedStream) -> Result:
    """Does one residual stream hold all blocks, and does every branch add something to it?

    An addition x + f(x) or g x + f(x) belongs to the stream if x is the sum of the addition before it, up to a norm or a scale. A map of
    joined states, W [x, x0] as in a U-Net, belongs to the stream, too; a map that changes the number of tokens begins another.

    The check fails if no stream holds a block, if the stream is cut where a block forgets its skip, if a skip goes around the layers, if
    a skip comes from a state before the one that its branch reads, or if a skip is added twice. If layers have no skip around them, a part
    of several maps without a skip fails if another part has one. Branches that return zero pass if all branches of their name do, as in
    ReZero; if only some do, these are dead and fail. It warns of a rectifier on the stream, a list that holds one module several times, a
    matrix that two modules share, and blocks that are in no layer.
    """
    flow, report = recording.flow, recording.report
    lines = [*([report.cut] if report.cut else []), *flow.missing]
    if lines:
        more = f"; and {len(lines) - MOST_LINES} more" * (len(lines) > MOST_LINES)
        return failed("; ".join(lines[:MOST_LINES]) + more, flow.joins[0] if flow.joins else "")
    count = f"{len(flow.branches)} branches in {flow.depth} layers"
    zero = [addition.branch for addition in recording.additions if not addition.value and addition.state]
    kinds = {kind_of_branch(recording, branch) for branch in zero}
    namesakes = [branch for branch in flow.branches if kind_of_branch(recording, branch) in kinds]
    if zero and len(namesakes) == len(zero):
        names = ", ".join(sorted({branch.name for branch in zero}))
        return passed(f"{count}; {names} return zero in all layers, as ReZero and zero-initialised last maps do")
    if zero:
        sentence = f"{len(zero)} of {count} return zero, and others of the same name do not"
        return failed(sentence, recording.path_of(zero[0]))
    if doubled := [addition for addition in recording.additions if addition.doubled]:
        return failed(f"the skip before {len(doubled)} of {count} is added twice", recording.path_of(doubled[0].branch))
    if rectified := [addition for addition in recording.additions if addition.rectified]:
        sentence = f"the stream loses its negative numbers before {len(rectified)} of {count}"
        path = recording.path_of(rectified[0].branch)
        return warned(f"{sentence}: does a rectifier act on it, in place?", path)
    if weights := shared_weights(recording):
        return warned(f"{weights[1]}: are copies meant?", weights[0])
    if flow.unmeasured:
        return warned(flow.unmeasured[0])
    if flow.inside:
        return passed(f"{flow.depth} layers with additions x + f(x) inside them")
    if not flow.skips:
        return warned(f"{flow.depth} layers without residual additions x + f(x)")
    return passed(f"{count}, all with skips")


def kind_of_branch(recording: RecordedStream, branch: Branch) -> tuple[str, str]:
    """Return the name of a branch and that of its layer without numbers. Branches of one kind are alike."""
    return re.sub(r"\d+", "#", recording.flow.layers[branch.layer - 1]), branch.name


def shared_weights(recording: RecordedStream) -> tuple[str, str] | None:
    """Return the name of a list that holds one module several times, or else of a layers' matrix that two modules share, and a sentence."""
    layers = tuple(f"{name}." for name in recording.flow.layers)
    owners: dict[int, tuple[str, str, nn.Module]] = {}
    for name, module in recording.examined.model.named_modules(remove_duplicate=False):
        entries = module._modules.values() if isinstance(module, nn.ModuleList | nn.Sequential) else ()
        modules = [part for part in entries if part is not None and any(True for _ in part.parameters())]
        if len({id(part) for part in modules}) == 1 < len(modules):
            return name or "the model", f"{len(modules)} entries of {name or 'the model'} are one module"
        layer = next((part for part in layers if f"{name}.".startswith(part)), "")
        for key, weight in module._parameters.items() if layer else ():
            if weight is None or weight.dim() < 2:
                continue
            path, first_layer, owner = owners.setdefault(id(weight), (f"{name}.{key}", layer, module))
            same_module = layer == first_layer and module is owner  # a module may have two names in its layer
            if path != f"{name}.{key}" and not same_module:
                return f"{name}.{key}", f"{name}.{key} and {path} are one matrix"
    return None


def describe_cut(report: StreamReport, before: StreamReport, joins: tuple[str, ...]) -> str:
    """Return a sentence on the modules that no skip passes, and the residual on both sides of them."""
    ends = [before.layers[-1].residual, report.layers[0].residual]
    if None not in ends and abs(ends[0] - ends[1]) <= 1e-9 * ends[1]:  # type: ignore[operator]
        ends[0] = before.layers[-2].residual  # the last layer forgets its last skip: its state lies behind the cut
    through = f"{', '.join(joins[:4])}{' and others' * (len(joins) > 4)}"
    where = f"between {before.layers[-1].name} and {report.layers[1].name}"
    change = f"where the residual goes from {show_number(ends[0])} to {show_number(ends[1])}"
    return f"the stream is cut: no skip passes {through}, {where}, {change}"
