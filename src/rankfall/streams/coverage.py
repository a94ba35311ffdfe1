"""Parts of a model that no stream covers: blocks outside all streams, and gaps in a stream where a block has no skip."""

from __future__ import annotations

import re
from dataclasses import replace

from torch import nn

from rankfall.streams.blocks import step_of
from rankfall.streams.flow import Flow
from rankfall.streams.frames import Call
from rankfall.streams.graph import Graph
from rankfall.streams.layers import Group, family, places
from rankfall.streams.record import Node
from rankfall.streams.sums import Summand, maps_joined, without_maps
from rankfall.streams.trace import MAPS, Tracer


def with_coverage(
    model: nn.Module,
    graph: Graph,
    tracer: Tracer,
    flows: list[Flow],
    chains: list[list[tuple[str, Group]]],
    sums: dict[int, Summand],
) -> list[Flow]:
    """Return the streams, each with the list of what it lacks.

    `chains`: the layers of each stream with their additions; `sums`: all residual additions of the pass.
    """
    calls = [calls_of(graph, model, layers) for layers in chains]
    items = [item for layers in chains for _, group in layers for item in group]
    outside = [
        call
        for call in outside_of(model, graph, tracer, [call for stream in calls for call in stream])
        if not in_branches(graph, call, items)
    ]
    held = {item.node.index for item in items}
    links = {item.before for item in items}
    between_layers = [item for item in sums.values() if item.node.index not in held and item.node.index in links]
    added = {name for flow in flows for name in flow.outside}
    apart = [
        call
        for call in outside
        if any(name == call.module or is_inside(name, call.module) for name in added)
        or returns_sum(graph, tracer, call, sums)
        or in_branches(graph, call, between_layers)
    ]
    bare = [call for call in outside if call not in apart]
    loose = {index: item for index, item in sums.items() if index not in held}
    measured = sum(map(len, calls))
    lines: tuple[str, ...] = ()
    unmeasured: tuple[str, ...] = ()
    if bare:
        lines = (
            f"{measured + len(outside)} blocks, {measured} measured: {list_calls(bare)} {'has' if len(bare) == 1 else 'have'} no residual "
            "addition, and no stream holds what it computes: is a skip missing?",
        )
    if apart:
        unmeasured = (
            f"{measured + len(outside)} blocks, {measured} measured: {list_calls(apart)} {'is' if len(apart) == 1 else 'are'} left out"
            f"{say_shapes(graph, tracer, apart, items)}; to measure what is left out, pass its names as blocks=",
        )
    parts = []
    for flow, layers, layer_calls in zip(flows, chains, calls):
        first = layers[0][1][0]
        ends = [(chain[-1][1][-1].node.index, other.name) for other, chain in zip(flows, chains) if chain is not layers]
        end, before = max((pair for pair in ends if graph.above(pair[0], first.state)), default=(None, None))
        older, mild = on_older_states(graph, [item for _, group in layers for item in group], loose)
        missing = [*lines, *without_skip(graph, tracer, layers, layer_calls), *([] if mild else older)]
        if before is None:
            missing += begins_behind(model, graph, tracer, first, layer_calls, outside)
        joins = between(graph, end, first.state) if end is not None else ()
        resized = end is not None and graph.nodes[end].shape != graph.nodes[first.state].shape
        parts.append(
            replace(
                flow,
                follows=before,
                joins=joins,
                resized=resized,
                missing=tuple(missing),
                unmeasured=(*unmeasured, *(older if mild else ())),
            )
        )
    return parts


def returns_sum(graph: Graph, tracer: Tracer, call: Call, sums: dict[int, Summand]) -> bool:
    """Return whether a call returns a residual addition made inside it, up to a norm."""
    additions = {index for index, item in sums.items() if call in item.node.stack}
    return any(additions & without_maps(graph, node, additions) for _, node in tracer.outputs.get(call, []))


def on_older_states(graph: Graph, items: Group, apart: dict[int, Summand]) -> tuple[list[str], bool]:
    """Return a line about skips that are older than the state that their branch reads, and whether it is mild.

    The stream lacks what was added between the two states. This is mild if only some layers have such a part and no layer adds one to the
    stream, as the shared attention of Zamba.

    `apart`: the residual additions of no stream. A group of layers with a skip around it, as of a residual network in a residual network,
    holds its inner additions in inner calls.
    """
    older_skips = [
        (module_of(graph, item), module_of(graph, added))
        for item in items
        for added in apart.values()
        if added.node.shape == item.node.shape
        and graph.source(added.state) == graph.source(item.state)
        and graph.above(added.node.index, item.branch)
        and not (set(added.node.stack) > set(item.node.stack))
        and graph.source(added.branch) not in without_maps(graph, item.branch)
    ]
    if not older_skips:
        return [], False
    later, earlier = older_skips[0]
    kinds = {re.sub(r"\d+", "#", module_of(graph, item)) for item in items}
    mild = len(older_skips) < len(items) and re.sub(r"\d+", "#", earlier) not in kinds
    return [
        f"{len(older_skips)} of {len(items)} skips are older states: {later} is added to a state without what {earlier} added to it"
    ], mild


def module_of(graph: Graph, item: Summand) -> str:
    """Return the name of the module that computes a branch."""
    stack = graph.nodes[graph.source(item.branch)].stack
    return (stack[-1].module if stack else "") or "the model itself"


def list_calls(calls: list[Call]) -> str:
    return ", ".join(map(str, calls[:6])) + " and others" * (len(calls) > 6)


def say_shapes(graph: Graph, tracer: Tracer, apart: list[Call], items: list[Summand]) -> str:
    """Return the reason why additions are in no layer if it is the shape of their states, as behind a merge of tokens; else ''."""
    shapes = {graph.nodes[node].shape for call in apart for _, node in tracer.outputs.get(call, [])}
    usual = items[0].node.shape
    if usual in shapes or not shapes:
        return ""
    return f", since states have the shape {min(shapes)} there and {usual} in the layers"


def without_skip(graph: Graph, tracer: Tracer, layers: list[tuple[str, Group]], layer_calls: list[Call]) -> list[str]:
    """Return a line on layers that compute something before their first addition, and on the last if it does so after its last."""
    if not layer_calls or len(layer_calls) != len(layers):
        return []
    calls: list[str] = []
    for call, (_, group) in zip(layer_calls, layers):
        start = tracer.inputs.get(call)
        if start is None or graph.nodes[start].shape != graph.nodes[group[0].state].shape:
            continue
        if any(is_inside(name, call.module) for name in between(graph, start, group[0].state)):
            calls.append(str(call))
    question = "has no x + f(x) around it: is a skip missing, or taken from another tensor than its branch reads?"
    where = ", ".join(calls[:3]) + " and others" * (len(calls) > 3)
    verb, owner = ("compute", "their") if len(calls) > 1 else ("computes", "its")
    lines = [f"what {where} {verb} before {owner} first addition {question}"] if calls else []
    last = layers[-1][1][-1].node.index
    outputs = [node for _, node in tracer.outputs.get(layer_calls[-1], []) if graph.above(last, node)]
    if len(layer_calls) > 1 and outputs and not any(last in without_maps(graph, node) for node in outputs):
        lines.append(f"what {layer_calls[-1]} computes after its last addition {question}")
    return lines


def begins_behind(
    model: nn.Module, graph: Graph, tracer: Tracer, first: Summand, layer_calls: list[Call], outside: list[Call]
) -> list[str]:
    """Return a line if calls like these layers precede the first state."""
    if not layer_calls or is_first_half(graph, first, layer_calls[0]):
        return []
    kind = family((layer_calls[0].module, layer_calls[0].number), model)
    layer = type(model.get_submodule(layer_calls[0].module))
    calls = [call for call in tracer.outputs if call.module and call not in layer_calls and call not in outside]
    behind = [
        str(call)
        for call in calls
        if family((call.module, call.number), model) == kind
        and type(model.get_submodule(call.module)) is layer  # an embedding may be in the same nn.Sequential
        and any(graph.above(node, first.state) for _, node in tracer.outputs.get(call, []))
    ]
    if not behind:
        return []
    return [f"this stream begins behind {', '.join(behind[:4])}: what is added to it there is not in it"]


def is_first_half(graph: Graph, first: Summand, layer: Call) -> bool:
    """Return whether the first state is x + f(y) of another layer: a half of a reversible network that begins apart from the other."""
    node = graph.nodes[graph.source(first.state)]
    inside = [len(call.module.split(".")) for call in node.stack]
    return node.operands is not None and node.shape == first.node.shape and layer.module.count(".") + 1 in inside


def calls_of(graph: Graph, model: nn.Module, layers: list[tuple[str, Group]]) -> list[Call]:
    """Return the calls of the layers. Layers that are not modules have none."""
    stacks = places(graph, [item for _, group in layers for item in group], model)
    return [
        call
        for name, group in layers
        if (call := next((inner for inner in stacks[group[0].node.index] if inner.module == name), None)) is not None
    ]


def outside_of(model: nn.Module, graph: Graph, tracer: Tracer, measured: list[Call]) -> list[Call]:
    """Return calls outside all layers that are like the layers or belong to a stack of alike modules that pass a state on."""
    names = {call.module for call in measured}
    kinds = {family((call.module, call.number), model) for call in measured}
    steps = [step[0] for call in tracer.outputs if call.module and (step := step_of(graph, tracer, call)) is not None]
    stacks: dict[str, list[Call]] = {}
    for call in steps:
        if any(True for _ in model.get_submodule(call.module).children()):
            stacks.setdefault(family((call.module, call.number), model), []).append(call)
    candidates: list[Call] = []
    for kind, stack in stacks.items():
        alike = len({type(model.get_submodule(call.module)) for call in stack}) < len(stack)
        if kind not in kinds and not ("#" in kind and alike):
            continue
        candidates += [
            call for call in stack if call not in measured and not any(nested(call.module, name) for name in names)
        ]
    outer = [call for call in candidates if not any(is_inside(call.module, other.module) for other in candidates)]
    return [call for call in outer if maps_in(graph, call)]


def nested(name: str, other: str) -> bool:
    """Return whether two names are of the same module or of a module and one inside it."""
    return name == other or is_inside(name, other) or is_inside(other, name)


def is_inside(inner: str, outer: str) -> bool:
    return inner.startswith(f"{outer}.")


def in_branches(graph: Graph, call: Call, items: list[Summand]) -> bool:
    """Return whether a branch of a stream contains what a call computes, such as an expert of a layer."""
    nodes = [node.index for node in graph.nodes if node.op in MAPS and call in node.stack]
    return any(
        graph.above(item.source, node) and graph.above(node, item.branch) and node != item.source
        for node in nodes
        for item in items
    )


def maps_in(graph: Graph, call: Call) -> bool:
    """Return whether a call contains a map."""
    return any(node.op in MAPS and call in node.stack for node in graph.nodes)


def between(graph: Graph, upper: int, lower: int) -> tuple[str, ...]:
    """Return the modules of the maps between one state and another."""
    maps = maps_between(graph, upper, lower)
    return tuple(dict.fromkeys(node.stack[-1].module or "the model itself" for node in maps))


def maps_between(graph: Graph, upper: int, lower: int) -> list[Node]:
    """Return the maps between one state and another."""
    return [
        node
        for node in graph.nodes[upper + 1 : lower + 1]
        if node.op in MAPS
        and node.stack
        and graph.above(upper, node.index)
        and graph.above(node.index, lower)
        and not maps_joined(graph, node.index)
    ]


def with_inner_skips(graph: Graph, tracer: Tracer, flow: Flow, sums: dict[int, Summand]) -> Flow:
    """Return a stream of layers without skips around them, with what is known of the additions inside its layers.

    If a layer has one, a part of it that no skip passes lacks its skip. A single map, such as one to heads before attention, is no part.
    Where a token has several streams, a map mixes these, and a layer adds to what it returns.
    """
    parts: list[str] = []  # the innermost module that holds all maps of a part without skip
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
        inner = [term for term in sums.values() if end.call in term.node.stack and graph.above(start, term.state)]
        for term in sorted(inner, key=lambda term: -term.node.index):
            if graph.above(term.node.index, state):
                gaps.append(maps_between(graph, term.node.index, state))
                state = term.state
        gaps.append(maps_between(graph, start, state))
        inside += len(gaps) > 1
        part = next((gap for gap in gaps if len(gap) > 1), None) if len(gaps) > 1 else None
        if part is not None:
            parts.append([call for call in part[0].stack if all(call in node.stack for node in part)][-1].module)
    if parts:
        line = f"no x + f(x) goes around {parts[0]}, in {len(parts)} of {flow.depth} layers: is a skip missing?"
        flow = replace(flow, missing=(*flow.missing, line), joins=(parts[0],))
    return replace(flow, inside=inside == flow.depth)
