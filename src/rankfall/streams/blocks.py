"""Layers without residual additions: consecutive calls of alike modules, each of which keeps the shape of its state.

Such a layer is one branch without a skip beside it. Its collapse can be measured too, and the effect of a skip.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

from torch import nn

from rankfall.streams.arguments import Arguments
from rankfall.streams.axes import with_axes
from rankfall.streams.branches import attention_in
from rankfall.streams.flow import MIXES, TOKENWISE, Branch, End, Flow, Layout, StreamEntry
from rankfall.streams.frames import Call, Operation
from rankfall.streams.layers import family
from rankfall.streams.mixing import directions, laid_out, mixing
from rankfall.streams.record import Graph, size_of
from rankfall.streams.trace import Tracer

BLOCK = "block"
Step = tuple[Call, tuple[object, ...], int, int]  # call, path to the state in its output, nodes of its input and output


def stream_of_blocks(
    model: nn.Module, arguments: Arguments, graph: Graph, tracer: Tracer, names: list[str] | None, batch: int
) -> Flow | None:
    """Return the stream of the outermost, longest stack of such calls, or None if no stack has two."""
    steps = [step for call in tracer.outputs if (step := step_of(graph, tracer, call)) is not None]
    stacks: dict[str, list[Step]] = defaultdict(list)
    for step in steps:
        call = step[0]
        if names is not None and call.module in names:
            stacks["named"].append(step)
        elif names is None and call.module:
            stacks[family(call, model)].append(step)
    candidates = [stack for stack in stacks.values() if len(stack) > 1 and one_after_the_other(graph, stack)]
    # outer stacks first: their modules have shorter names than those of the stacks inside them
    candidates.sort(key=lambda stack: (stack[0][0].module.count("."), -len(stack)))
    for stack in candidates:
        flow = with_axes(model, arguments, draft(model, graph, tracer, stack))
        tried = mixing(model, arguments, flow, frozenset(flow.attends.values()))
        if names is None and not any(result.mixes for result in tried.values()):
            continue
        layout = laid_out(flow.shape, flow.layout.feature, tried, batch, flow.layout.streams)
        branches = []
        for branch in flow.branches:
            kind = MIXES if tried[branch.number].mixes else TOKENWISE
            reach = directions(tried[branch.number], layout)
            branches.append(Branch(branch.number, branch.layer, branch.operation, 0, branch.name, kind, *reach))
        around = say_around(graph, tracer, stack)
        missing = (around,) * bool(around)
        return replace(flow, branches=tuple(branches), layout=layout, missing=missing, around=bool(around))
    return None


def step_of(graph: Graph, tracer: Tracer, call: Call) -> Step | None:
    """Return the step of a call whose output has a state of the shape of its first input, or None."""
    start = tracer.inputs.get(call)
    if start is None or len(graph.nodes[start].shape) < 2:
        return None
    shape = graph.nodes[start].shape
    for path, node in tracer.outputs[call]:
        if graph.nodes[node].shape == shape and node != start and graph.above(start, node):
            return call, path, start, node
    return None


def one_after_the_other(graph: Graph, stack: list[Step]) -> bool:
    """Return whether the input of each call is computed from the output of the one before and has its shape."""
    return all(
        graph.above(before[3], after[2]) and graph.nodes[before[3]].shape == graph.nodes[after[2]].shape
        for before, after in pairwise(stack)
    )


def say_around(graph: Graph, tracer: Tracer, stack: list[Step]) -> str:
    """Return a sentence on the first call that a skip passes outside of it, as in x = W [x, f(x)]; '' if there is none."""
    for n, (before, after) in enumerate(pairwise(stack)):
        earlier = stack[n - 1][3] if n else None
        if earlier is None and len(stack) > 2:
            continue  # the first state may be read again later, as by x + x0, which is no skip
        join = join_around(graph, tracer, before, after, earlier)
        if join is not None:
            node = graph.nodes[join]
            where = (node.stack[-1].module if node.stack else "") or "the model itself"
            return (
                f"a skip goes around {before[0]} and is joined to its output by {node.op.strip('_')} in {where}: what these calls "
                "return is a branch and no state, so that the state behind the last is not known; write the skip as x + f(x), or name "
                "modules that hold both by blocks="
            )
    return ""


def join_around(graph: Graph, tracer: Tracer, before: Step, after: Step, earlier: int | None) -> int | None:
    """Return the node that joins the output of a call to a state before it, on the way to the input of the next call; None if none does.

    `earlier`: the output of the call before, from which that state is computed. Only tensors with more than one number per token count.
    """
    shape = graph.nodes[before[2]].shape
    tokens = size_of(graph.nodes[before[2]]) // shape[-1]

    def carries(index: int) -> bool:
        node = graph.nodes[index]
        return (
            before[0] not in node.stack
            and index not in tracer.weights
            and tracer.tensors[index].is_floating_point()
            and size_of(node) > tokens
        )

    # the nodes behind the call that depend on it, then what they read past it
    visited, front = {after[2]}, [after[2]]
    while front:
        index = front.pop()
        for parent in graph.nodes[index].parents:
            if parent in visited or not carries(parent):
                continue
            if graph.above(parent, before[2]) and (earlier is None or graph.above(earlier, parent)):
                ways = (way for way in range(index, after[2] + 1) if graph.between(index, way, after[2]))
                return next(way for way in ways if graph.above(before[3], way))
            visited.add(parent)
            front.append(parent)
    return None


def draft(model: nn.Module, graph: Graph, tracer: Tracer, stack: list[Step]) -> Flow:
    """Return a first form of the stream, with each call as a layer, before mixing is tested."""
    first = graph.nodes[stack[0][2]]
    shape = first.shape
    entry = StreamEntry(None if first.leaf else first.operation, tracer.tensors[first.index], shape)
    branches = tuple(
        Branch(
            n, n + 1, Operation(step[0], BLOCK, 0), 0, f"the whole {type(model.get_submodule(step[0].module)).__name__}"
        )
        for n, step in enumerate(stack)
    )
    layers = tuple(step[0].module for step in stack)
    ends = tuple(End(step[0], step[1]) for step in stack)
    heads, scores = attention_in(
        graph, lambda mix: [branches[n] for n, step in enumerate(stack) if step[0] in graph.nodes[mix].stack]
    )
    layout = Layout(-1, (), tuple(range(len(shape) - 1)))
    return Flow("", layers, shape[-1], branches, entry, ends, layout, heads, scores, skips=False, shaped=tracer.shaped)
