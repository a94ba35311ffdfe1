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
    between_layers = [one for one in sums.values() if one.node.index not in held and one.node.index in links]
    added = {name for flow in flows for name in flow.outside}
    apart = [
        call
        for call in outside
        if any(name == call.module or is_inside(name, call.module) for name in added)
        or returns_sum(graph, tracer, call, sums)
        or in_branches(graph, call, between_layers)
    ]
    bare = [call for call in outside if call not in apart]
    loose = {index: one for index, one in sums.items() if index not in held}
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
    for flow, layers, own in zip(flows, chains, calls):
        first = layers[0][1][0]
        ends = [(other[-1][1][-1].node.index, one.name) for one, other in zip(flows, chains) if other is not layers]
        end, before = max((pair for pair in ends if graph.above(pair[0], first.state)), default=(None, None))
        older, mild = on_older_states(graph, [item for _, group in layers for item in group], loose)
        missing = [*lines, *without_skip(graph, tracer, layers, own), *([] if mild else older)]
        if before is None:
            missing += begins_behind(model, graph, tracer, first, own, outside)
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
    """Return whether a call returns a residual addition of its own, up to a norm."""
    own = {index for index, one in sums.items() if call in one.node.stack}
    return any(own & without_maps(graph, node, own) for _, node in tracer.outputs.get(call, []))


def on_older_states(graph: Graph, items: Group, apart: dict[int, Summand]) -> tuple[list[str], bool]:
    """Return a line if skips are older than the state that their branch reads, so that the stream lacks what was added meanwhile.

    It is mild if only some layers have such a part and no layer adds one to the stream, as the shared attention of Zamba.

    `apart`: the residual additions of no stream. A group of layers with a skip around it, as of a residual network in a residual network,
    holds its inner additions in inner calls.
    """
    found = [
        (made_in(graph, item), made_in(graph, one))
        for item in items
        for one in apart.values()
        if one.node.shape == item.node.shape
        and graph.source(one.state) == graph.source(item.state)
        and graph.above(one.node.index, item.branch)
        and not (set(one.node.stack) > set(item.node.stack))
        and graph.source(one.branch) not in without_maps(graph, item.branch)
    ]
    if not found:
        return [], False
    later, earlier = found[0]
    kinds = {re.sub(r"\d+", "#", made_in(graph, item)) for item in items}
    mild = len(found) < len(items) and re.sub(r"\d+", "#", earlier) not in kinds
    return [
        f"{len(found)} of {len(items)} skips are older states: {later} is added to a state without what {earlier} added to it"
    ], mild


def made_in(graph: Graph, item: Summand) -> str:
    """Return the module that computes a branch."""
    stack = graph.nodes[graph.source(item.branch)].stack
    return (stack[-1].module if stack else "") or "the model itself"


def list_calls(calls: list[Call]) -> str:
    return ", ".join(map(str, calls[:6])) + " and others" * (len(calls) > 6)


def say_shapes(graph: Graph, tracer: Tracer, apart: list[Call], items: list[Summand]) -> str:
    """Return why additions are in no layer if their states have another shape, as behind a merge of tokens; else ''."""
    shapes = {graph.nodes[node].shape for call in apart for _, node in tracer.outputs.get(call, [])}
    usual = items[0].node.shape
    if usual in shapes or not shapes:
        return ""
    return f", since states have the shape {min(shapes)} there and {usual} in the layers"


def without_skip(graph: Graph, tracer: Tracer, layers: list[tuple[str, Group]], own: list[Call]) -> list[str]:
    """Return a line on layers that compute something before their first addition, and on the last if it does so after its last."""
    if not own or len(own) != len(layers):
        return []
    found: list[str] = []
    for call, (_, group) in zip(own, layers):
        start = tracer.inputs.get(call)
        if start is None or graph.nodes[start].shape != graph.nodes[group[0].state].shape:
            continue
        if any(is_inside(name, call.module) for name in between(graph, start, group[0].state)):
            found.append(str(call))
    question = "has no x + f(x) around it: is a skip missing, or taken from another tensor than its branch reads?"
    where, forms = ", ".join(found[:3]) + " and others" * (len(found) > 3), ("computes", "its")
    forms = ("compute", "their") if len(found) > 1 else forms
    found = [f"what {where} {forms[0]} before {forms[1]} first addition {question}"] if found else []
    last = layers[-1][1][-1].node.index
    left = [node for _, node in tracer.outputs.get(own[-1], []) if graph.above(last, node)]
    if len(own) > 1 and left and not any(last in without_maps(graph, node) for node in left):
        found.append(f"what {own[-1]} computes after its last addition {question}")
    return found


def begins_behind(
    model: nn.Module, graph: Graph, tracer: Tracer, first: Summand, own: list[Call], outside: list[Call]
) -> list[str]:
    """Return a line if calls like these layers precede the first state."""
    if not own or is_first_half(graph, first, own[0]):
        return []
    kind, layer = family((own[0].module, own[0].number), model), type(model.get_submodule(own[0].module))
    others = [call for call in tracer.outputs if call.module and call not in own and call not in outside]
    behind = [
        str(call)
        for call in others
        if family((call.module, call.number), model) == kind
        and type(model.get_submodule(call.module)) is layer  # an embedding may be in the same nn.Sequential
        and any(graph.above(node, first.state) for _, node in tracer.outputs.get(call, []))
    ]
    if not behind:
        return []
    return [f"this stream begins behind {', '.join(behind[:4])}: what is added to it there is not in it"]


def is_first_half(graph: Graph, first: Summand, layer: Call) -> bool:
    """Return whether the first state is x + f(y) of another layer: a half of a reversible network that begins apart from the other."""
    made = graph.nodes[graph.source(first.state)]
    inside = [len(call.module.split(".")) for call in made.stack]
    return made.operands is not None and made.shape == first.node.shape and layer.module.count(".") + 1 in inside


def calls_of(graph: Graph, model: nn.Module, layers: list[tuple[str, Group]]) -> list[Call]:
    """Return the calls of the layers. Layers that are not modules have none."""
    stacks = places(graph, [item for _, group in layers for item in group], model)
    return [
        call
        for name, group in layers
        if (call := next((one for one in stacks[group[0].node.index] if one.module == name), None)) is not None
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
    found: list[Call] = []
    for kind, stack in stacks.items():
        alike = len({type(model.get_submodule(call.module)) for call in stack}) < len(stack)
        if kind not in kinds and not ("#" in kind and alike):
            continue
        found += [
            call for call in stack if call not in measured and not any(nested(call.module, name) for name in names)
        ]
    outer = [call for call in found if not any(is_inside(call.module, other.module) for other in found)]
    return [call for call in outer if maps_in(graph, call)]


def nested(one: str, other: str) -> bool:
    return one == other or is_inside(one, other) or is_inside(other, one)


def is_inside(inner: str, outer: str) -> bool:
    return inner.startswith(f"{outer}.")


def in_branches(graph: Graph, call: Call, items: list[Summand]) -> bool:
    """Return whether a branch of a stream holds what a call computes, such as an expert of a layer."""
    nodes = [node.index for node in graph.nodes if node.op in MAPS and call in node.stack]
    return any(
        graph.above(item.source, node) and graph.above(node, item.branch) and node != item.source
        for node in nodes
        for item in items
    )


def maps_in(graph: Graph, call: Call) -> bool:
    return any(node.op in MAPS and call in node.stack for node in graph.nodes)


def between(graph: Graph, upper: int, lower: int) -> tuple[str, ...]:
    """Return the modules of the maps between one state and another."""
    return tuple(
        dict.fromkeys(node.stack[-1].module or "the model itself" for node in maps_between(graph, upper, lower))
    )


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
        here, gaps = output, []
        held = [one for one in sums.values() if end.call in one.node.stack and graph.above(start, one.state)]
        for item in sorted(held, key=lambda one: -one.node.index):
            if graph.above(item.node.index, here):
                gaps.append(maps_between(graph, item.node.index, here))
                here = item.state
        gaps.append(maps_between(graph, start, here))
        inside += len(gaps) > 1
        part = next((gap for gap in gaps if len(gap) > 1), None) if len(gaps) > 1 else None
        if part is not None:
            parts.append([call for call in part[0].stack if all(call in node.stack for node in part)][-1].module)
    if parts:
        line = f"no x + f(x) goes around {parts[0]}, in {len(parts)} of {flow.depth} layers: is a skip missing?"
        flow = replace(flow, missing=(*flow.missing, line), joins=(parts[0],))
    return replace(flow, inside=inside == flow.depth)
