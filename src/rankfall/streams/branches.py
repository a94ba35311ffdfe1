"""The step from a chain of residual additions to a stream with layers: kinds and names of branches, ends of layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from rankfall.streams.flow import CROSS, MIXES, TOKENWISE, Branch, BranchPart, End, Flow, Layout, StreamEntry
from rankfall.streams.frames import Operation
from rankfall.streams.layers import Group
from rankfall.streams.mixing import TokenMixing, directions, laid_out
from rankfall.streams.record import SAME_STATE, Graph, size_of
from rankfall.streams.sums import Summand, reaches
from rankfall.streams.trace import Tracer

SAME_LAYOUT = SAME_STATE - {"transpose", "permute", "movedim", "swapaxes", "t", "rearrange", "view", "reshape"}
ITSELF = "the layer itself"  # not a part of it
PRODUCTS_OF_TWO = frozenset({"matmul", "__matmul__", "bmm", "baddbmm", "einsum"})


def attends(graph: Graph, item: Summand) -> bool:
    """Return whether the branch of an addition contains attention."""
    return graph.attends_between(item.source, item.branch)


def draft(graph: Graph, tracer: Tracer, chain: Group) -> Flow:
    """Return a first form of the stream, with every addition as a layer, before mixing is tested."""
    first = chain[0]
    state = graph.nodes[first.state]
    feature = 1 if channels_first(graph, chain) else -1
    branches = []
    for number, item in enumerate(chain):
        assert item.node.operation is not None
        joins = (graph.nodes[term].operation for term in item.terms)
        parts = tuple(BranchPart(operation, None) for operation in joins if operation is not None)
        branch = Branch(number, number + 1, item.node.operation, item.skip, "", parallel=item.parallel, parts=parts)
        if item.gate is not None:
            gate = graph.nodes[item.gate]
            branch = replace(branch, gate=gate.operation, factor=gate.parents.index(item.state))
        branches.append(branch)
    layout = Layout(feature, (), tuple(range(len(state.shape) - 1)))
    entry = entry_at(graph, tracer, first)
    return Flow(
        "", ("",) * len(chain), state.shape[feature], tuple(branches), entry, (), layout, {}, {}, shaped=tracer.shaped
    )


def entry_at(graph: Graph, tracer: Tracer, first: Summand) -> StreamEntry | None:
    """Return the entry of the stream that begins with this addition, or None if no single operation makes its first state."""
    source, shape = graph.nodes[as_given(graph, tracer, entry_of(graph, first))], graph.nodes[first.state].shape
    if not source.leaf and (source.operation is None or size_of(source) != size_of(graph.nodes[first.state])):
        return None
    # the shape of the state in the addition; the operation that makes it may have another layout of the same rows
    operation = None if source.leaf else source.operation
    return StreamEntry(operation, tracer.tensors[source.index], shape, source.part[0] if source.part else 0)


def entry_of(graph: Graph, first: Summand) -> int:
    """Return the earliest node that has the layout of the first state and is an ancestor of the branch, else the state's source."""
    shape, index, earliest = graph.nodes[first.state].shape, first.state, first.source
    while True:
        node = graph.nodes[index]
        if node.shape == shape and graph.above(index, first.branch):
            earliest = index
        parents = [
            parent for parent in node.parents if not graph.nodes[parent].leaf or graph.nodes[parent].shape == shape
        ]
        if index == first.source or node.op not in SAME_LAYOUT or len(parents) != 1:
            return earliest
        index = parents[0]


def as_given(graph: Graph, tracer: Tracer, index: int) -> int:
    """Return the node that made a tensor, looking through operations such as `x.float()` that return the same object."""
    while True:
        node = graph.nodes[index]
        if node.op not in SAME_LAYOUT or len(node.parents) != 1:
            return index
        if tracer.tensors[node.parents[0]] is not tracer.tensors[index]:
            return index
        index = node.parents[0]


def channels_first(graph: Graph, chain: Group) -> bool:
    """Return whether features are the second axis: convolutions or norms over channels read states of this shape, linear maps do not."""
    shape = graph.nodes[chain[0].state].shape
    if len(shape) < 3:
        return False
    convolved = False
    for item in chain[:4]:
        for node in graph.nodes[item.source : item.branch + 1]:
            if node.op not in ("conv1d", "conv2d", "conv3d", "linear", "addmm", "batch_norm", "group_norm"):
                continue
            if graph.above(node.index, item.branch) and any(
                graph.nodes[parent].shape == shape for parent in node.parents
            ):
                if node.op in ("linear", "addmm"):
                    return False
                convolved = True
    return convolved


def finish_flow(
    graph: Graph,
    tracer: Tracer,
    chain: Group,
    layers: list[tuple[str, Group]],
    tried: dict[int, TokenMixing],
    flow: Flow,
    batch: int,
) -> Flow:
    """Return the stream with its layers, layout, ends, kinds of branches and the attention in them."""
    number_of = {item.node.index: n for n, item in enumerate(chain)}
    first = layers[0][1][0]
    shape = graph.nodes[first.state].shape
    feature = flow.layout.feature
    layout = laid_out(shape, feature, tried, batch, flow.layout.streams)
    inside = {item.node.index for _, group in layers for item in group}
    inputs = {node.index for node in graph.nodes if node.leaf and node.index not in tracer.weights}
    branches: list[Branch] = []
    items: list[Summand] = []  # of the branches
    for layer, (layer_name, group) in enumerate(layers, 1):
        for item, name in zip(group, branch_names(graph, group, layer_name)):
            mixing, untested = tried[number_of[item.node.index]], flow.branches[number_of[item.node.index]]
            kind = MIXES if (mixing.mixes if mixing.tried else attends(graph, item)) else TOKENWISE
            if kind == TOKENWISE and attends(graph, item) and reaches(graph, item.branch, item.source, inputs):
                kind = CROSS
            sides = [one_sided(mixing.parts.get(n, [False, False])) for n in range(len(untested.parts))]
            parts = [replace(part, drop=side) for part, side in zip(untested.parts, sides) if side is not None]
            later, earlier, after, ahead = directions(mixing, layout)
            known = replace(untested, number=len(items), layer=layer, name=name, kind=kind)
            moves = replace(known, forwards=later, backwards=earlier, after=after, ahead=ahead)
            branches.append(replace(moves, parts=tuple(parts) if kind == MIXES else ()))
            items.append(item)
    heads, scores = attention_in(
        graph, lambda mix: [b for b, i in zip(branches, items) if graph.between(i.source, mix, i.branch)]
    )
    ends = tuple(end_of(graph, tracer, group, inside) for _, group in layers)
    entry = flow.entry if first is chain[0] else entry_at(graph, tracer, first)
    entry = entry or StreamEntry(None, None, shape)
    depth_names = tuple(name for name, _ in layers)
    outside = tuple(
        item.node.stack[-1].module if item.node.stack else ""
        for item in chain
        if item.node.index not in inside and item.node.index > first.node.index
    )
    post = post_norm(graph, chain)
    return Flow(
        "", depth_names, shape[feature], tuple(branches), entry, ends, layout, heads, scores, post,
        outside=outside, shaped=tracer.shaped,
    )  # fmt: skip


def attention_in(
    graph: Graph, holders: Callable[[int], list[Branch]]
) -> tuple[dict[Operation, int], dict[Operation, int]]:
    """Return the softmaxes, and the products of queries and keys above them, each with the number of its branch.

    `holders` returns the branches that contain a softmax, the first of which counts.
    """
    heads: dict[Operation, int] = {}
    scores: dict[Operation, int] = {}
    for mix in graph.attention:
        operation, product, branches = graph.nodes[mix].operation, product_above(graph, mix), holders(mix)
        if operation is not None and branches:
            heads.setdefault(operation, branches[0].number)
            own = [branch.number for branch in branches if branch.kind != CROSS]
            if product is not None and own:
                scores.setdefault(product, own[0])
    return heads, scores


def product_above(graph: Graph, softmax: int) -> Operation | None:
    """Return the product of queries and keys above a softmax: the nearest product of two activations."""
    products = {node.index for node in graph.nodes[:softmax] if node.op in PRODUCTS_OF_TWO}
    product = graph.nearest(softmax, products)
    return graph.nodes[product].operation if product is not None else None


def post_norm(graph: Graph, chain: Group) -> bool:
    """Return whether most states are not the sum before them, up to scale and layout."""
    apart = [graph.source(after.state) != before.node.index for before, after in pairwise(chain)]
    return sum(apart) > len(apart) / 2


def one_sided(flags: list[bool]) -> int | None:
    """Return the index of the only operand that mixes no tokens, or None if both operands are alike."""
    return None if flags[0] == flags[1] else flags.index(False)


def branch_names(graph: Graph, group: Group, layer: str) -> list[str]:
    """Return the names of a layer's branches. If one part holds several, each name includes its place in that part."""
    names = [branch_name(graph, item, layer) for item in group]
    qualified = []
    for item, name in zip(group, names):
        part = item.node.stack[-1].module if item.node.stack else ""
        shared = names.count(name) > 1 and f"{layer}.{name}" == part
        inner = branch_name(graph, item, part) if shared else ITSELF
        qualified.append(name if inner == ITSELF else f"{name}.{inner}")
    return qualified


def branch_name(graph: Graph, item: Summand, layer: str) -> str:
    """Return the name of the part of the layer that holds a branch's addition, or else its last operation."""
    source = graph.nodes[graph.source(item.branch)]
    while source.stack and source.stack[-1].module == layer:  # the layer rolls or reshapes it: go to what it reads
        parents = [parent for parent in source.parents if parent != item.source and graph.above(item.source, parent)]
        if len(parents) != 1:
            break
        source = graph.nodes[parents[0]]
    around = item.node.stack[-1].module if item.node.stack else ""
    inside = source.stack[-1].module if source.stack else ""
    name = around if around != layer and around.startswith(layer) else inside
    relative = name.removeprefix(layer).strip(".") if name.startswith(layer) else name
    parts = relative.split(".")
    path = parts[:1]
    for part in parts[1:]:
        if not part.isdigit():
            break
        path.append(part)
    return ".".join(path) or ITSELF


def end_of(graph: Graph, tracer: Tracer, group: Group, inside: set[int]) -> End | None:
    """Return the innermost module call that holds a layer and returns its state, or None if the last sum is the state."""
    last = group[-1].node
    stacks = [item.node.stack for item in group]
    common = [calls[0] for calls in zip(*stacks) if all(call == calls[0] for call in calls)]
    later = [index for index in inside if index > last.index]
    for call in reversed(common[1:]):
        states = [
            (path, node)
            for path, node in tracer.outputs.get(call, [])
            if graph.nodes[node].shape == graph.nodes[group[0].state].shape
            and graph.above(last.index, node)
            and not any(graph.above(index, node) for index in later)
        ]
        # if a layer returns its next branch beside the sum, the sum is the state
        states.sort(key=lambda state: graph.source(state[1]) != last.index)
        return End(call, states[0][0]) if states else None  # a module around the layer may do more than the layer
    return None
