"""What of a model no stream holds: blocks outside all streams, and places where a stream is cut because a block has no skip."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from torch import nn

from rankfall.models.frames import Call
from rankfall.models.graph import Graph
from rankfall.models.modules.blocks import step_of
from rankfall.models.modules.flow import Flow
from rankfall.models.modules.layers import Group, family, places
from rankfall.models.modules.sums import without_maps
from rankfall.models.modules.trace import MAPS, Tracer


def with_coverage(
    model: nn.Module, graph: Graph, tracer: Tracer, flows: list[Flow], chains: list[list[tuple[str, Group]]]
) -> list[Flow]:
    """The streams in the order of the pass, each with what is missing of it. `chains`: the layers of each with their additions."""
    calls = [calls_of(graph, model, layers) for layers in chains]
    outside = outside_of(model, graph, tracer, [call for stream in calls for call in stream])
    count = len(outside) + sum(map(len, calls))
    parts = []
    for flow, layers, own in zip(flows, chains, calls):
        first, last = layers[0][1][0], layers[-1][1][-1]
        earlier = [
            (other[-1][1][-1].node.index, name)
            for name, other in zip([one.name for one in flows], chains)
            if other is not layers and graph.above(other[-1][1][-1].node.index, first.state)
        ]
        end, before = max(earlier, default=(None, None))
        found = []
        if own and (start := tracer.inputs.get(own[0])) is not None:
            reached = without_maps(graph, first.state)
            computed = start not in reached and any(
                graph.nodes[one].op in MAPS and graph.above(start, one) for one in reached
            )
            if (
                computed
                and (len(own) > 1 or before is not None)
                and shares_class(model, own[0], [c for s in calls for c in s])
            ):
                found.append(
                    f"what {own[0]} computes before its first addition has no skip around it: the stream begins there"
                )
        if (
            own
            and len(own) > 1
            and not any(
                last.node.index in without_maps(graph, node)
                for _, node in tracer.outputs.get(own[-1], [])
                if graph.above(last.node.index, node)
            )
            and tracer.outputs.get(own[-1])
        ):
            found.append(
                f"what {own[-1]} computes after its last addition has no skip around it: the stream ends there"
            )
        joins = between(graph, end, first.state) if end is not None else ()
        parts.append(replace(flow, follows=before, joins=joins, missing=tuple(found)))
    if outside:
        names = ", ".join(map(str, outside[:6])) + " and others" * (len(outside) > 6)
        said = (
            f"{count} blocks, {count - len(outside)} measured: {names} {'has' if len(outside) == 1 else 'have'} no residual addition, and "
            "no stream holds what it computes: is a skip missing?"
        )
        parts = [replace(flow, missing=(said, *flow.missing)) for flow in parts]
    return parts


def shares_class(model: nn.Module, call: Call, calls: Iterable[Call]) -> bool:
    """Whether other layers are of the class of this one, so that it is a block like others."""
    kind = family((call.module, call.number), model)
    return sum(family((one.module, one.number), model) == kind for one in calls) > 1


def calls_of(graph: Graph, model: nn.Module, layers: list[tuple[str, Group]]) -> list[Call]:
    """The calls that layers are; none for layers that are no modules."""
    stacks = places(graph, [item for _, group in layers for item in group], model)
    return [
        call
        for name, group in layers
        if (call := next((one for one in stacks[group[0].node.index] if one.module == name), None)) is not None
    ]


def outside_of(model: nn.Module, graph: Graph, tracer: Tracer, measured: list[Call]) -> list[Call]:
    """Calls like the layers, and calls of stacks of like modules that pass a state on, which are no layer and share none with one."""
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


def maps_in(graph: Graph, call: Call) -> bool:
    return any(node.op in MAPS and call in node.stack for node in graph.nodes)


def between(graph: Graph, upper: int, lower: int) -> tuple[str, ...]:
    """Modules of the maps on the way from one state to another."""
    found = [
        node.stack[-1].module or "the model itself"
        for node in graph.nodes[upper : lower + 1]
        if node.op in MAPS and node.stack and graph.above(upper, node.index) and graph.above(node.index, lower)
    ]
    return tuple(dict.fromkeys(found))
