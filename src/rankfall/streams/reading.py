"""The step from a recorded pass to streams: their layers and names, and refusal of streams that cannot be measured."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from torch import nn

from rankfall.errors import RankfallError
from rankfall.streams.arguments import Arguments, ChangesWidth, NoStream, first_size
from rankfall.streams.axes import with_axes, with_samples
from rankfall.streams.blocks import stream_of_blocks
from rankfall.streams.branches import attends, draft, finish_flow
from rankfall.streams.coverage import with_coverage, with_inner_skips
from rankfall.streams.flow import Flow
from rankfall.streams.layers import Group, group_layers, in_blocks
from rankfall.streams.mixing import mixing
from rankfall.streams.record import Graph
from rankfall.streams.sums import chains, residual_sums
from rankfall.streams.trace import Tracer


def streams_of(
    model: nn.Module, arguments: Arguments, tracer: Tracer, names: list[str] | None, name: str
) -> list[Flow]:
    """Return the streams, the longest first, each with its layers and the kinds of its branches."""
    graph = Graph(tracer.nodes)
    sums = residual_sums(graph)
    chosen = chains(graph, sums)
    named: list[list[tuple[str, Group]]] = []
    if names is not None:
        named = [layers for chain in chosen if (layers := in_blocks(graph, chain, model, names))]
        chosen = [[item for _, part in layers for item in part] for layers in named]
    apart = are_apart(graph, chosen)
    if max(map(len, chosen), default=0) <= 1 or apart:
        alone = stream_of_blocks(model, arguments, graph, tracer, names, first_size(arguments))
        if alone is not None and alone.depth > (1 if apart else len(chosen[0]) if chosen else 0):
            alone = alone if alone.around else with_inner_skips(graph, tracer, alone, sums)
            return check_flows([with_samples(model, arguments, alone, first_size(arguments))], name)
    if apart:
        calls = dict.fromkeys(
            str(chain[0].node.stack[-1]) for chain in sorted(chosen, key=lambda chain: chain[0].state)
        )
        raise NoStream(
            f"{name} has no residual stream through its layers: the additions x + f(x) inside {', '.join([*calls][:4])} begin behind a "
            "map, and no skip goes around it; name two or more modules that map states of one shape by blocks="
        )
    if not chosen:
        where = f" in blocks {', '.join(names[:3])}" if names else ""
        raise NoStream(
            f"{name} has no residual additions x + f(x){where} among its {len(graph.nodes)} operations: if its layers have skips, "
            "they are hidden from PyTorch (TorchScript, a kernel of its own); if they have none, name the layers by blocks="
        )
    flows, layered = [], []
    for number, chain in enumerate(chosen):
        flow = with_axes(model, arguments, draft(graph, tracer, chain))
        attending = frozenset(n for n, item in enumerate(chain) if attends(graph, item))
        tried = mixing(model, arguments, flow, attending)
        mixes = {
            item.node.index: tried[n].mixes if tried[n].tried else attends(graph, item) for n, item in enumerate(chain)
        }
        layers = named[number] if names is not None else group_layers(graph, chain, model, mixes)
        layered.append(layers)
        flows.append(finish_flow(graph, tracer, chain, layers, tried, flow, first_size(arguments)))
    flows = name_streams(flows)
    if names is None:
        refuse_changing(flows, graph, chosen, name)
        flows = with_coverage(model, graph, tracer, flows, layered, sums)
    return check_flows([with_samples(model, arguments, flow, first_size(arguments)) for flow in flows], name)


def are_apart(graph: Graph, chosen: list[Group]) -> bool:
    """Return whether streams follow one another, each in one call that mixes at most once: layers whose skips are all inside them."""
    calls = [{item.node.stack[-1:] for item in chain} for chain in chosen]
    alone = all(len(inside) == 1 for inside in calls) and len(set().union(*calls)) == len(chosen)
    once = all(sum(attends(graph, item) for item in chain) <= 1 for chain in chosen)
    widths = {chain[0].node.shape[-1] for chain in chosen}
    ends = [chain[-1].node.index for chain in chosen]
    follow = any(graph.above(end, chain[0].state) for chain in chosen for end in ends if end < chain[0].node.index)
    return alone and once and follow and len(widths) == 1


def check_flows(flows: list[Flow], name: str) -> list[Flow]:
    """Return the streams with more than one token. Raise an error if there are none."""
    short = [flow for flow in flows if flow.depth >= 1 and tokens_of(flow) > 1]
    if not short:
        flow = flows[0]
        raise RankfallError(
            f"{name} has one token a sample (states of shape {flow.shape}): what all tokens share is all there "
            "is; pass inputs=... with two tokens or more"
        )
    return short


def tokens_of(flow: Flow) -> int:
    return math.prod(flow.shape[axis] for axis in flow.layout.tokens) // flow.layout.groups


def name_streams(flows: list[Flow]) -> list[Flow]:
    """Name each stream by the shortest prefix of its layers' names that no other stream has: encoder, decoder."""
    if len(flows) == 1:
        return flows
    ways = [flow.layers[0].split(".") for flow in flows]
    named: dict[str, Flow] = {}
    for flow, way in zip(flows, ways):
        others = [other for other in ways if other is not way]
        ends = (end for end in range(1, len(way)) if all(way[:end] != other[:end] for other in others))
        name = ".".join(way[: next(ends, len(way))]) or f"stream {len(named) + 1}"
        numbered = (name, *(f"{name} ({number})" for number in range(2, len(flows) + 2)))
        name = next(candidate for candidate in numbered if candidate not in named)
        named[name] = replace(flow, name=name)
    return list(named.values())


def refuse_changing(flows: list[Flow], graph: Graph, chosen: list[Group], name: str) -> None:
    """Raise an error if a stack of alike layers changes its width on the way, as in a pyramid."""
    for n, (flow, chain) in enumerate(zip(flows, chosen)):
        for other, following in zip(flows[n + 1 :], chosen[n + 1 :]):
            if flow.width == other.width:
                continue
            linked = graph.above(chain[-1].node.index, following[0].node.index) or graph.above(
                following[-1].node.index, chain[0].node.index
            )
            if linked and kinds_of(chain) & kinds_of(following):
                raise ChangesWidth(
                    f"{name}'s stream changes its width from {min(flow.width, other.width)} to {max(flow.width, other.width)}: the "
                    f"states of two widths make no curve; pass blocks= with the layers of one width, for example {flow.layers[0]!r} to "
                    f"{flow.layers[-1]!r}",
                    flow.layers,
                )


def kinds_of(chain: Group) -> set[str]:
    """Return the names of the modules that hold the additions, with # in place of numbers, so that alike layers agree."""
    return {re.sub(r"(^|(?<=\.))\d+(?=\.|$)", "#", item.node.stack[-1].module) for item in chain if item.node.stack}
