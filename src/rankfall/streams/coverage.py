"""Parts of a model that no stream covers: blocks outside all streams, and gaps in a stream where a block has no skip."""

from __future__ import annotations

import re
from dataclasses import replace

from torch import nn

from rankfall.streams.blocks import step_of
from rankfall.streams.flow import Flow
from rankfall.streams.frames import Call
from rankfall.streams.layers import Group, family, places
from rankfall.streams.record import CHOICES, Graph
from rankfall.streams.sums import Summand, is_resized, maps_between, without_maps
from rankfall.streams.trace import MAPS, Tracer


def with_coverage(
    model: nn.Module,
    graph: Graph,
    tracer: Tracer,
    flows: list[Flow],
    chains: list[list[tuple[str, Group]]],
    sums: dict[int, Summand],
) -> list[Flow]:
    """Return the streams, each with sentences on what it lacks and on what is not measured.

    `chains`: layers of each stream with their additions; `sums`: all residual additions of the pass.
    """
    calls = [calls_of_layers(graph, model, layers) for layers in chains]
    additions = [addition for layers in chains for _, group in layers for addition in group]
    outside = [
        call
        for call in calls_outside(model, graph, tracer, [call for stream in calls for call in stream])
        if not in_branches(graph, call, additions)
    ]
    in_layers = {addition.node.index for addition in additions}
    links = {addition.before for addition in additions}
    between_layers = [
        addition
        for addition in sums.values()
        if addition.node.index not in in_layers and (addition.node.index in links or addition.before in in_layers)
    ]
    outside_names = {name for flow in flows for name in flow.outside}
    left_out = [
        call
        for call in outside
        if any(name == call.module or is_inside(name, call.module) for name in outside_names)
        or returns_sum(graph, tracer, call, sums)
        or in_branches(graph, call, between_layers)
    ]
    skipless = [call for call in outside if call not in left_out]
    left_out = [call for call in left_out if not reads_chosen(graph, tracer, call, additions)]
    loose_sums = {index: addition for index, addition in sums.items() if index not in in_layers}
    measured = sum(map(len, calls))
    counted = f"{measured + len(outside)} blocks, {measured} measured"
    lines: list[str] = []
    unmeasured: list[str] = []
    if skipless:
        has = "has" if len(skipless) == 1 else "have"
        lines = [
            f"{counted}: {list_calls(skipless)} {has} no residual addition, and no stream holds what it computes: is a skip missing?"
        ]
    if left_out:
        where = f"{'is' if len(left_out) == 1 else 'are'} left out{describe_shapes(graph, tracer, left_out, additions)}"
        unmeasured = [
            f"{counted}: {list_calls(left_out)} {where}; to measure what is left out, pass its names as blocks="
        ]
    covered = []
    for flow, layers, layer_calls in zip(flows, chains, calls):
        first = layers[0][1][0]
        ends = [(chain[-1][1][-1].node.index, other.name) for other, chain in zip(flows, chains) if chain is not layers]
        end, previous = max((pair for pair in ends if graph.above(pair[0], first.state)), default=(None, None))
        stale, mild = stale_skips(graph, [addition for _, group in layers for addition in group], loose_sums)
        missing = [*lines, *missing_skips(graph, tracer, layers, layer_calls), *([] if mild else stale)]
        if previous is None:
            missing += begins_behind(model, graph, tracer, first, layer_calls, outside)
        sound = (*unmeasured, *(stale if mild else ()))
        flow = replace(flow, follows=previous, missing=tuple(missing), unmeasured=sound)
        if end is not None:
            joins, resized = modules_between(graph, end, first.state), is_resized(graph, end, first.state)
            flow = replace(flow, joins=joins, resized=resized)
        covered.append(flow)
    return covered


def returns_sum(graph: Graph, tracer: Tracer, call: Call, sums: dict[int, Summand]) -> bool:
    """Return whether a call returns a residual addition made inside it, up to a norm."""
    additions = {index for index, addition in sums.items() if call in addition.node.stack}
    return any(additions & without_maps(graph, node, additions) for _, node in tracer.outputs.get(call, []))


def stale_skips(graph: Graph, additions: Group, others: dict[int, Summand]) -> tuple[list[str], bool]:
    """Return a line on skips that come from an older state than the one that their branch reads, and whether it is mild.

    The stream lacks what was added between the two states. This is mild if it is so in some layers only, and no layer has such an addition
    in its stream, as with the shared attention of Zamba. Additions in inner calls are left out: a group of layers with a skip around it, as
    of a residual network in a residual network, has its additions there.

    `others`: the residual additions of no stream.
    """
    older_skips = [
        (module_of(graph, addition), module_of(graph, other))
        for addition in additions
        for other in others.values()
        if other.node.shape == addition.node.shape
        and graph.source(other.state) == graph.source(addition.state)
        and graph.above(other.node.index, addition.branch)
        and not (set(other.node.stack) > set(addition.node.stack))
        and graph.source(other.branch) not in without_maps(graph, addition.branch)
    ]
    if not older_skips:
        return [], False
    later, earlier = older_skips[0]
    kinds = {re.sub(r"\d+", "#", module_of(graph, addition)) for addition in additions}
    mild = len(older_skips) < len(additions) and re.sub(r"\d+", "#", earlier) not in kinds
    return [
        f"{len(older_skips)} of {len(additions)} skips are older states: {later} is added to a state without what {earlier} added to it"
    ], mild


def module_of(graph: Graph, addition: Summand) -> str:
    """Return the name of the module that computes a branch."""
    stack = graph.nodes[graph.source(addition.branch)].stack
    return (stack[-1].module if stack else "") or "the model itself"


def list_calls(calls: list[Call]) -> str:
    return ", ".join(map(str, calls[:6])) + " and others" * (len(calls) > 6)


def reads_chosen(graph: Graph, tracer: Tracer, call: Call, additions: list[Summand]) -> bool:
    """Return whether a call acts on fewer tokens than the layers, which a router chooses, as in a mixture of depths."""
    start = tracer.inputs.get(call)
    if start is None or graph.nodes[start].shape[-2:-1] >= additions[0].node.shape[-2:-1]:
        return False
    return any(node.op in CHOICES and graph.above(node.index, start) for node in graph.nodes[:start])


def describe_shapes(graph: Graph, tracer: Tracer, calls: list[Call], additions: list[Summand]) -> str:
    """Return a clause if states outside the layers have another shape, as behind a merge of tokens; else ''."""
    shapes = {graph.nodes[node].shape for call in calls for _, node in tracer.outputs.get(call, [])}
    usual = additions[0].node.shape
    if usual in shapes or not shapes:
        return ""
    return f", since states have the shape {min(shapes)} there and {usual} in the layers"


def missing_skips(graph: Graph, tracer: Tracer, layers: list[tuple[str, Group]], layer_calls: list[Call]) -> list[str]:
    """Return a line on layers that compute something before their first addition, and one if the last does so after its last addition."""
    if not layer_calls or len(layer_calls) != len(layers):
        return []
    calls = []
    for call, (_, group) in zip(layer_calls, layers):
        start = tracer.inputs.get(call)
        if start is None or graph.nodes[start].shape != graph.nodes[group[0].state].shape:
            continue
        if any(is_inside(name, call.module) for name in modules_between(graph, start, group[0].state)):
            calls.append(call)
    question = "has no x + f(x) around it: is a skip missing, or taken from another tensor than its branch reads?"
    verb = "computes before its" if len(calls) == 1 else "compute before their"
    lines = [f"what {list_calls(calls)} {verb} first addition {question}"] if calls else []
    last = layers[-1][1][-1].node.index
    outputs = [node for _, node in tracer.outputs.get(layer_calls[-1], []) if graph.above(last, node)]
    if len(layer_calls) > 1 and outputs and not any(last in without_maps(graph, node) for node in outputs):
        lines.append(f"what {layer_calls[-1]} computes after its last addition {question}")
    return lines


def begins_behind(
    model: nn.Module, graph: Graph, tracer: Tracer, first: Summand, layer_calls: list[Call], outside: list[Call]
) -> list[str]:
    """Return a line if calls of modules like these layers come before the first state of the stream."""
    if not layer_calls or is_first_half(graph, first, layer_calls[0]):
        return []
    layer_family = family(layer_calls[0], model)
    layer = type(model.get_submodule(layer_calls[0].module))
    calls = [call for call in tracer.outputs if call.module and call not in layer_calls and call not in outside]
    earlier = [
        call
        for call in calls
        if family(call, model) == layer_family
        and type(model.get_submodule(call.module)) is layer  # an embedding may be in the same nn.Sequential
        and any(graph.above(node, first.state) for _, node in tracer.outputs.get(call, []))
    ]
    line = f"this stream begins behind {list_calls(earlier)}: what is added to it there is not in it"
    return [line] if earlier else []


def is_first_half(graph: Graph, first: Summand, layer: Call) -> bool:
    """Return whether the first state is x + f(y) of another layer, as where a half of a reversible network begins."""
    node = graph.nodes[graph.source(first.state)]
    inside = [len(call.module.split(".")) for call in node.stack]
    return node.operands is not None and node.shape == first.node.shape and layer.module.count(".") + 1 in inside


def calls_of_layers(graph: Graph, model: nn.Module, layers: list[tuple[str, Group]]) -> list[Call]:
    """Return the calls of the layers. Layers that are not modules have none."""
    stacks = places(graph, [addition for _, group in layers for addition in group], model)
    return [
        call
        for name, group in layers
        if (call := next((inner for inner in stacks[group[0].node.index] if inner.module == name), None)) is not None
    ]


def calls_outside(model: nn.Module, graph: Graph, tracer: Tracer, measured: list[Call]) -> list[Call]:
    """Return calls that are in no layer, yet like the layers, or in a stack of modules of one class that pass a state on."""
    names = {call.module for call in measured}
    kinds = {family(call, model) for call in measured}
    steps = [step[0] for call in tracer.outputs if call.module and (step := step_of(graph, tracer, call)) is not None]
    stacks: dict[str, list[Call]] = {}
    for call in steps:
        if any(True for _ in model.get_submodule(call.module).children()):
            stacks.setdefault(family(call, model), []).append(call)
    candidates: list[Call] = []
    for kind, stack in stacks.items():
        alike = len({type(model.get_submodule(call.module)) for call in stack}) < len(stack)
        if kind not in kinds and not ("#" in kind and alike):
            continue
        candidates += [
            call
            for call in stack
            if call.module not in names
            and not any(is_inside(call.module, name) or is_inside(name, call.module) for name in names)
        ]
    outer = [call for call in candidates if not any(is_inside(call.module, other.module) for other in candidates)]
    return [call for call in outer if any(node.op in MAPS and call in node.stack for node in graph.nodes)]


def is_inside(inner: str, outer: str) -> bool:
    return inner.startswith(f"{outer}.")


def in_branches(graph: Graph, call: Call, additions: list[Summand]) -> bool:
    """Return whether a branch contains the maps of a call, such as those of an expert in a layer."""
    nodes = [node.index for node in graph.nodes if node.op in MAPS and call in node.stack]
    return any(
        graph.between(addition.source, node, addition.branch) and node != addition.source
        for node in nodes
        for addition in additions
    )


def modules_between(graph: Graph, upper: int, lower: int) -> tuple[str, ...]:
    """Return the names of the modules whose maps lie between two states, each once."""
    maps = maps_between(graph, upper, lower)
    return tuple(dict.fromkeys(node.stack[-1].module or "the model itself" for node in maps))


def with_inner_skips(graph: Graph, tracer: Tracer, flow: Flow, sums: dict[int, Summand]) -> Flow:
    """Return a stream of layers without skips around them, with what the additions inside its layers show.

    If a layer has an inner addition, a part of it that no skip passes lacks its skip. A part has several maps; a single map, such as one to
    heads before attention, is none. If a token has several streams, a map mixes them, and the layer adds to what the map returns.
    """
    modules: list[str] = []  # the innermost module that holds all maps of a part without a skip
    inside = 0
    for end in flow.ends:
        assert end is not None
        start = tracer.inputs[end.call]
        output = dict(tracer.outputs[end.call])[end.path]
        if flow.layout.streams:
            inside += any(
                node.operands is not None and end.call in node.stack and node.shape == graph.nodes[start].shape
                for node in graph.nodes[start : output + 1]
            )
            continue
        state, gaps = output, []
        inner_sums = [term for term in sums.values() if end.call in term.node.stack and graph.above(start, term.state)]
        for term in sorted(inner_sums, key=lambda term: -term.node.index):
            if graph.above(term.node.index, state):
                gaps.append(maps_between(graph, term.node.index, state))
                state = term.state
        gaps.append(maps_between(graph, start, state))
        inside += len(gaps) > 1
        part = next((gap for gap in gaps if len(gap) > 1), None) if len(gaps) > 1 else None
        if part is not None:
            modules.append([call for call in part[0].stack if all(call in node.stack for node in part)][-1].module)
    if modules:
        line = f"no x + f(x) goes around {modules[0]}, in {len(modules)} of {flow.depth} layers: is a skip missing?"
        flow = replace(flow, missing=(*flow.missing, line), joins=(modules[0],))
    return replace(flow, inside=inside == flow.depth)
